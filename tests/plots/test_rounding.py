import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.plots import rounding


def test_a_neighbour_is_one_unit_away():
    exact = np.array([1.0, 0.25, 3e-5])
    got = exact.astype(np.float32)
    exact = got.astype(np.float64)
    np.testing.assert_allclose(rounding.ulps(np.nextafter(got, np.float32(2)), exact), 1)
    np.testing.assert_array_equal(rounding.ulps(got, exact), 0)


def test_sigmoids_are_right_to_a_few_units():
    z = np.linspace(-25, 25, 1001, dtype=np.float32)
    kernels = {name: KERNELS[name].kernel("sigmoid") for name in ("loops", "vector")}
    found = rounding.sigmoid_errors(kernels, z)
    assert all(0 < errors.max() < 6 for errors in found.values())
    wrong = rounding.sigmoid_errors({"off": lambda z, y: kernels["loops"](z + 1, y)}, z)
    assert wrong["off"].max() > 1000


def test_errors_are_drawn_with_the_line_of_rounding():
    z = np.linspace(-1, 1, 5)
    ax = rounding.errors(z, {"loops": np.arange(5.0), "vector": np.ones(5)})
    drawn = [line.get_ydata() for line in ax.lines]
    np.testing.assert_array_equal(drawn[0], np.arange(5.0))
    assert list(drawn[-1]) == [0.5, 0.5]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["loops", "vector"]
