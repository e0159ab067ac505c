import numpy as np

from cnnlab.lessons import lesson_03
from cnnlab.measure.timing import Timing


def timing(name, seconds):
    return Timing(name, (seconds,) * 3, work=8e9)


def test_rates_bounds_and_peak_are_drawn_in_gflops():
    wide = {1: {"a": timing("a", 2.0), "b": timing("b", 4.0)}, 4: {"a": timing("a", 1.0)}}
    narrow = {1: {"a": timing("a", 8.0)}}
    left, right = lesson_03.over_batch(
        {"W": wide, "N": narrow}, 16e9, {"roof": lambda n: 5e9 + 0 * n}
    )
    drawn = {line.get_label(): line.get_ydata() for line in left.lines}
    np.testing.assert_allclose(drawn["a"], [4, 8])
    np.testing.assert_allclose(drawn["b"], [2])
    np.testing.assert_allclose(drawn["roof"], 5)
    assert list(drawn["peak of the core"]) == [16, 16]
    assert "roof" not in [line.get_label() for line in right.lines]
