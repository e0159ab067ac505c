"""Lesson 12: what its cells count is what the package counts, and its pictures show it."""

import numpy as np
import pytest

from cnnlab.check.access_log import Tasks, Watched
from cnnlab.lessons import lesson_12 as lesson
from tests.lessons import breaking

PATH = breaking.NOTEBOOKS / "12_stationarity.ipynb"
LOG = [("x", "read", 0), ("w", "read", 0), ("x", "read", 3), ("w", "read", 1), ("z", "write", 1)]


@pytest.fixture(scope="module")
def kernels():
    """The kernels of the first cells with matter, and the cell that logs accesses."""
    import numba

    names = {"np": np, "numba": numba, "lesson": lesson}
    cells = breaking.read(PATH)
    for k in breaking.matter(cells)[:3]:
        source = cells[k].source.partition("\n\n\norders =")[0].partition("\n\n\nsmall =")[0]
        exec(source, names)
    return names


@pytest.mark.parametrize("order", ["output", "input", "weight"])
def test_the_lesson_logs_what_the_package_logs(kernels, order):
    kernel = kernels[f"{order}_stationary"]
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((1, 1, 6, 7)), "w": rng.random((2, 1, 3, 3)), "b": rng.random(2)}
    arrays["z"] = np.empty((1, 2, 4, 5))
    log = Tasks()
    kernel.py_func(*(Watched(name, array, log) for name, array in arrays.items()))
    expected = [entry[:3] for entry in log if entry[0] in "xwz"]
    assert kernels["accesses"](kernel, 2, 6, 7, 3) == expected


def test_a_log_is_cut_after_each_multiply_add():
    assert lesson.cut(LOG) == [0, 1, 3]
    assert lesson.cut([LOG[1], LOG[0], LOG[2], LOG[4]]) == [0, 2, 4]


def test_the_stepper_has_a_frame_for_each_step():
    log = [("w", "read", 0), ("x", "read", 0), ("x", "read", 3), ("z", "write", 1)]
    shapes = {"x": (2, 2), "w": (1, 1), "z": (1, 2)}
    assert len(lesson.what_stays({"a": log, "b": log}, shapes, 2)) == 2
