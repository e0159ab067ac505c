import numpy as np

from cnnlab.lessons import lesson_02


def history(*accuracies):
    return [{"epoch": k, "test_accuracy": a} for k, a in enumerate(accuracies, start=1)]


def test_every_seed_is_a_line_and_their_median_the_thickest():
    runs = {"max": [history(0.1, 0.5), history(0.3, 0.9), history(0.2, 0.6)]}
    ax = lesson_02.accuracy(runs)
    thin, thick = ax.lines[:3], ax.lines[3]
    assert [list(line.get_ydata()) for line in thin] == [[0.1, 0.5], [0.3, 0.9], [0.2, 0.6]]
    np.testing.assert_allclose(thick.get_ydata(), [0.2, 0.6])
    assert thick.get_linewidth() > max(line.get_linewidth() for line in thin)
    assert [text.get_text() for text in ax.texts] == ["max 60.0%"]
