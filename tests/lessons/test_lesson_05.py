"""Lesson 05: its kernels stand alone, agree with the package's, and wrong ones are not timed."""

import numba
import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.lessons import lesson_05 as lesson
from cnnlab.measure import timing
from tests.lessons import breaking

pytestmark = pytest.mark.slow
PATH = breaking.NOTEBOOKS / "05_one_core.ipynb"


@pytest.fixture(scope="module")
def matter():
    """What the cells with matter define where nothing but NumPy and Numba is imported."""
    cells, names = breaking.read(PATH), {}
    for k in breaking.matter(cells):
        alone = {"np": np, "numba": numba}
        exec(cells[k].source, alone)
        names |= {name: alone[name] for name in cells[k].binds}
    return names


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return [rng.normal(size=n).astype(np.float32) for n in ((16, 2, 9, 11), (3, 2, 5, 5), 3)]


def test_the_sums_are_those_of_the_package(matter, images):
    z = np.empty((16, 3, 5, 7), np.float32)
    KERNELS["vector"].kernel("conv_forward")(*images, z)
    for name in ("naive", "float32", "rows"):
        got = np.full_like(z, np.nan)
        matter[f"sums_{name}"](*images, got)
        timing.same(got, z, name=name)
    for name in ("lanes", "five_taps"):
        got = np.full((5, 3, 7 * 16), np.nan, np.float32)
        matter[f"sums_{name}"](matter["side_by_side"](images[0]), *images[1:], got)
        timing.same(got.reshape(5, 3, 7, 16).transpose(3, 1, 0, 2), z, name=name)


def test_the_polynomial_is_that_of_the_package(matter):
    z = np.linspace(-100, 100, 4001, dtype=np.float32)
    got, expected = np.empty_like(z), np.empty_like(z)
    matter["sigmoid_polynomial"](z, got)
    KERNELS["vector"].kernel("sigmoid")(z, expected)
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_wrong_kernels_are_neither_proved_nor_timed(matter, images):
    def late(x, w, b, z):
        matter["sums_rows"](x, w, b, z)
        z[-1, -1, -1, -1] += 1

    def late_lane(x, w, b, z):
        matter["sums_lanes"](x, w, b, z)
        z[..., -1] += 1

    right, sigmoid, copy = matter["sums_rows"], matter["sigmoid_float32"], matter["side_by_side"]
    for wrong in ((late,), (late_lane, copy)):
        with pytest.raises(AssertionError, match="not yet right"):
            lesson.prove(*wrong)
    for wrong in ((late, sigmoid), (right, lambda z, y: None), (late_lane, sigmoid, copy)):
        with pytest.raises(AssertionError, match=r"elements differ|NaN"):
            lesson.climb({"right": (right, sigmoid), "wrong": wrong}, *images)
    with pytest.raises(AssertionError, match="elements differ"):
        lesson.by_length({"late": (late, "pixels")}, [8])


def test_a_rung_is_timed_whole_and_in_its_parts(matter, images):
    sums, sigmoid, copy = (matter[n] for n in ("sums_lanes", "sigmoid_naive", "side_by_side"))
    timings = lesson.climb(
        {"plain": (matter["sums_rows"], sigmoid), "4": (sums, sigmoid, copy)}, *images
    )
    assert [*lesson.parts(timings)["4"]] == ["copy", "sums", "sigmoid"]
    assert [*lesson.parts(timings)["plain"]] == ["sums", "sigmoid"]
    assert lesson.parts(timings)["4"]["copy"] == timings["4", "copy"].median
    result = lesson.by_length({"taps": (matter["sums_float32"], "taps")}, [5, 200])
    assert [*result["taps"]] == [5, 200] and all(t.median < 1e-5 for t in result["taps"].values())
