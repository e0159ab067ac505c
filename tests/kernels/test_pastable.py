"""Every kernel stands alone: its source needs nothing but NumPy and Numba."""

import builtins
import dis
import importlib
import inspect
import pkgutil
import re

import pytest
from numba.core.registry import CPUDispatcher

from cnnlab import kernels
from cnnlab.kernels import CONTRACT, KERNELS

IMPORTS = "import numpy as np\nimport numba\nfrom numba import njit, prange\n"
# Not for pasting: what is made of other kernels, and what compiled kernels call.
NOT_ALONE = "registers|allreduce|workers|lanes|few|steps|threads"


def is_own(module, name, source):
    return (source.__module__, source.__name__) == (module.__name__, name)


def kernels_of(module):
    """The module's own Numba functions, by name."""
    return {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, CPUDispatcher) and is_own(module, name, function.py_func)
    }


MODULES = [
    importlib.import_module(result.name)
    for result in pkgutil.walk_packages(kernels.__path__, "cnnlab.kernels.")
    if not re.fullmatch(NOT_ALONE, result.name.removeprefix("cnnlab.kernels."))
]
SINGLE = [(module, name) for module in MODULES for name in kernels_of(module)]


@pytest.mark.parametrize("module, name", SINGLE)
def test_a_kernel_is_made_from_its_source_alone(module, name):
    kernel, alone = getattr(module, name), {}
    exec(IMPORTS + inspect.getsource(kernel.py_func), alone)
    assert alone[name].targetoptions == kernel.targetoptions
    made, ours = alone[name].py_func, kernel.py_func
    assert made.__defaults__ == ours.__defaults__ and not ours.__closure__
    used = {step.argval for step in dis.get_instructions(ours) if step.opname == "LOAD_GLOBAL"}
    outside = used - ({*alone, *dir(builtins)} - {name})
    assert not outside, f"{name} uses {outside} of its module: write it into the kernel"


def test_every_operation_of_every_strategy_is_among_them():
    tested = {getattr(module, name) for module, name in SINGLE}
    for strategy in ("loops", "vector"):  # those written with Numba, for one core
        assert {KERNELS[strategy].kernel(operation) for operation in CONTRACT} <= tested
