"""Every kernel with a parallel loop passes `check.threads.kernel`, which looks for races."""

import importlib

import pytest
from numba.core.dispatcher import Dispatcher

from cnnlab.check import threads
from cnnlab.kernels import CONTRACT, KERNELS
from tests.source import FILES

# No operation of the contract, so it has no cases of its own.
OTHERS = {"on_all_threads", "triangle_blocks", "triangle_cyclic"}


def parallel_kernels():
    for module in (
        importlib.import_module(f"cnnlab.{name}")
        for name in FILES
        if name.startswith(("kernels", "lessons."))
    ):
        for name, kernel in vars(module).items():
            if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("parallel"):
                if kernel.py_func.__module__ == module.__name__:
                    yield pytest.param(name, kernel, id=f"{module.__name__}.{name}")


def operation_of(name):
    """The operation of the contract that a kernel's name begins with."""
    return max((o for o in CONTRACT if name.startswith(o)), key=len, default=None)


@pytest.mark.parametrize("name, kernel", [*parallel_kernels()])
def test_no_parallel_loop_races_as_far_as_plain_python_can_follow_it(name, kernel):
    operation = operation_of(name)
    assert (operation is None) == (name in OTHERS)
    followed = operation and threads.follow(operation, kernel, {})
    if followed is None:
        assert name in OTHERS
    else:
        assert followed, str(followed)


@pytest.mark.slow
@pytest.mark.parametrize("operation", CONTRACT)
def test_a_parallel_kernel_is_right_on_any_number_of_threads(operation):
    """Those of lessons are proved there."""
    verdict = threads.kernel(operation, KERNELS["threads"].kernel(operation))
    assert verdict, str(verdict)
