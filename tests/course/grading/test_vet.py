"""What may be looked into only computes."""

import pytest

from cnnlab.course.grading import vet
from cnnlab.lessons import lesson_10, lesson_23
from tests.course.grading.styles import key

KERNEL = """
import numba
import numpy as np
@numba.njit(parallel=True)
def kernel(x, z):
    for i in numba.prange(x.size):
        {}
"""


@pytest.mark.parametrize("lesson", ["05", "06", "10", "11", "12", "20", "23"])
def test_the_answers_of_the_key_compute(lesson):
    assert lesson_10 and lesson_23
    for wanted, code in key(lesson).items():
        if "njit" in code or "comm" in code:
            assert not vet.reaches(code), wanted


@pytest.mark.parametrize(
    "line",
    [
        "z[i] = np.sqrt(x[i])",
        "data = x[i]; config, load = data, 2; z[i] = config * load",
        "f_0, _kept = np.random.rand(2); z[i] = x.copy()[i] + np.trace(x) * f_0",
        "z[i] = max(x[i], np.float32(0)) if i % 2 else abs(x[i])",
    ],
)
def test_computing_is_fine(line):
    assert not vet.reaches(KERNEL.format(line))


@pytest.mark.parametrize(
    "line",
    [
        "open('x')", "getattr(x, 'y')", "x.__class__", "np.save('f', x)", "x.tofile('f')",
        "np.add = max", "import os", "import cnnlab.check", "__import__('os')", "eval('1')",
        "from numpy import ctypeslib", "numba.core.event", "global x",
        "class A: pass", "from numba import objmode", "np.lib.format", "for np.add in x: pass",
        "numba.sys.modules", "from numba import sys", "z = numba; z.sys._getframe(1).f_locals",
        "from cnnlab.ranks.schedules" + " import os", "x._base", "f = kernel.__code__",
        "np.os.system", "vars(np)", "x.ctypes.data", "with numba.objmode(): pass",
        "(lambda: np.__dict__)()",
    ],
)  # fmt: skip
def test_what_reaches_further_is_named(line):
    assert vet.reaches(KERNEL.format(line))


def test_statements_at_the_top_only_define():
    assert vet.reaches("import numpy as np\nnp.add.at = 1") and vet.reaches("print(1)")
    assert not vet.reaches("import numpy as np\none = np.float32(1)")
