import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from cnnlab.lessons import lesson_53

matplotlib.use("Agg")


def test_each_optimizer_has_its_own_map_with_its_path():
    places = {name: np.array([[-4.0, 1], [k, 0]]) for k, name in enumerate("abc")}
    first = lesson_53.paths((1, 30), places)
    panels = first.figure.axes[:3]
    assert [ax.get_title() for ax in panels] == ["a", "b", "c"]
    for ax, way in zip(panels, places.values(), strict=True):
        np.testing.assert_allclose(np.transpose(ax.lines[0].get_data()), way)
    plt.close("all")


def test_every_seed_is_drawn_and_lines_are_means():
    result = {"sgd": {0.1: (0.5, 0.7), 0.2: (0.8, 0.8)}}
    ax = lesson_53.accuracy_by_rate(result)
    np.testing.assert_allclose(ax.lines[-1].get_data(), [[0.1, 0.2], [0.6, 0.8]])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5, 0.7])
    assert ax.get_xscale() == "log"
    plt.close("all")
