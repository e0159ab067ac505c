import matplotlib.pyplot as plt
import numpy as np

from cnnlab.lessons import lesson_02


def test_every_seed_is_a_point_and_the_line_goes_through_medians():
    ax = lesson_02.over_rates({"max": {0.1: [0.5, 0.9, 0.6], 0.4: [0.3, 0.1, 0.2]}})
    line, *seeds = ax.lines
    np.testing.assert_allclose(line.get_ydata(), [0.6, 0.2])
    assert [list(points.get_ydata()) for points in seeds] == [[0.5, 0.3], [0.9, 0.1], [0.6, 0.2]]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "0.4"]


def test_a_frame_shows_each_number_and_marks_those_that_count():
    numbers, marked = np.arange(4).reshape(2, 2) / 2, np.eye(2, dtype=bool)
    _, ax = plt.subplots()
    lesson_02.tiles(numbers, "forward", marked)(ax)
    assert [text.get_text() for text in ax.texts] == ["0.00", "0.50", "1.00", "1.50"]
    boxes = [box.get_xy() for box in ax.patches if box.get_visible()]
    np.testing.assert_allclose(boxes, [(-0.45, -0.45), (0.55, 0.55)])
    assert ax.get_title() == "forward"


def test_four_chains_overlap_and_one_does_not():
    ax = lesson_02.picture("chains")
    one, four = (max(bar.get_x() + bar.get_width() for bar in a.patches) for a in ax.figure.axes)
    assert (one, four) == (32, 11)


def test_a_vector_has_as_many_lanes_as_are_marked():
    face = lesson_02.picture("lanes").figure.axes
    red = [
        sum(p.get_facecolor()[:3] != (1, 1, 1) and p.get_fill() for p in a.patches) for a in face
    ]
    assert red == [8, 8, 6]
