import numpy as np
import pytest

from cnnlab.lessons import lesson_00b as lesson
from cnnlab.measure import timing


@pytest.mark.parametrize("rate, expected", [(False, [4, 2]), (True, [0.25, 0.5])])
def test_a_curve_is_per_unit_of_work_beside_its_bounds(rate, expected):
    timed = {1024: timing.Timing("", (8e-9,) * 9, 2), 8192: timing.Timing("", (8e-9,) * 9, 4)}
    given = {"bounds": {"least": [1, 1]}, "marks": {"L1": 2048}, "rate": rate}
    ax = lesson.curve(timed, xlabel="size", ylabel="ns", **given)
    assert list(ax.lines[0].get_xdata()) == [1024, 8192]
    assert np.allclose(ax.lines[0].get_ydata(), expected)
    assert [text.get_text() for text in ax.texts] == ["L1", "least"]


def test_the_steppers_count_what_they_draw():
    html = lesson.in_flight().html
    assert "a chain: 1 in flight, 128 bytes" in html and "known: 4 in flight, 320 bytes" in html
    html = lesson.lines_fetched().html
    for name, lines in (("rows", 4), ("columns", 64)):
        assert f"By {name}. Numbers read: 64. Lines fetched: {lines}." in html
