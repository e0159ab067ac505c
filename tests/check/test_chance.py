import numpy as np
import pytest

from cnnlab.lessons.lesson_56 import tried, unbiased

VALUES = np.array([0.3, -0.3, 1.0, 0.0, 2.5])


def by_chance(values, chances):
    return np.floor(values + chances)


def test_a_mean_that_is_right_passes():
    result = tried(by_chance, VALUES, 2000)
    assert result.shape == (2000, 5) and set(result[:, 0]) == {0, 1}
    assert unbiased("x", result, VALUES, 1.0)


@pytest.mark.parametrize(
    "rounding, said",
    [
        (lambda v, u: np.rint(v), "of 2.5 arrives 2 in the mean"),
        (lambda v, u: np.floor(v + u**2), "arrives"),
        (lambda v, u: np.floor(v + 3 * u), "its levels are 1 apart"),
        (lambda v, u: v / 0, "expected finite numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_what_is_biased_or_far_off_is_told(rounding, said):
    verdict = unbiased("x", tried(rounding, VALUES, 2000), VALUES, 1.0)
    assert not verdict and said in str(verdict)


def test_each_number_has_levels_of_its_own():
    result = tried(by_chance, VALUES, 2000) * 4
    assert unbiased("x", result, 4 * VALUES, np.full(5, 4.0))
    assert not unbiased("x", result, 4 * VALUES, np.array([4, 4, 4, 4, 1.0]))
