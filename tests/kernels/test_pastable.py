"""Every kernel runs from its source alone, where nothing but NumPy and Numba is imported.

Those that lessons show are compiled from their source there, and checked.
"""

import builtins
import dis
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from cnnlab import check, kernels
from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT, KERNELS
from cnnlab.kernels.contract import STRIDES
from tests.source import NOTEBOOKS

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
LESSONS = "".join(file.read_text("utf-8") for file in NOTEBOOKS.glob("*.ipynb"))
IN_NO_LESSON = [
    pytest.param(module, name, id=short)
    for module, name in SINGLE
    if f'"kernel:{(short := f"{module.__name__}.{name}".removeprefix("cnnlab.kernels."))}"'
    not in LESSONS
]


def random(*shape):
    return np.random.default_rng(0).random(shape).astype(np.float32)


PLACES = np.array([0, 3, 8, 1, 5, 6] * 2).reshape(2, 1, 2, 3)
CALLS = {  # arguments of kernels that are no operation of the contract, or ask for more
    "max_pool_forward": (random(2, 1, 7, 11), random(2, 1, 2, 3), 0 * PLACES, 3),
    "max_pool_backward": (random(2, 1, 2, 3), PLACES, random(2, 1, 7, 11), 3),
    "fold": (random(3, 3, 3, 2, 3, 4), random(2, 3, 5, 6)),
}


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def run(function, arguments, options):
    """What a kernel returns and what its arrays hold afterwards; and whether either says much."""
    after = copies(arguments)
    returned = function(*after, **options)
    pairs = [(a, b) for a, b in zip(arguments, after, strict=True) if isinstance(a, np.ndarray)]
    assert returned is not None or any(not np.array_equal(a, b, equal_nan=True) for a, b in pairs)
    several = returned if isinstance(returned, tuple) else [returned] * (returned is not None)
    return [*(b for _, b in pairs), *several]


@pytest.mark.slow
@pytest.mark.parametrize("module, name", IN_NO_LESSON)
def test_a_kernel_runs_from_its_source_alone(module, name):
    original = getattr(module, name)
    alone = {}
    exec(IMPORTS + inspect.getsource(original.py_func), alone)
    pasted = alone[name]
    assert pasted.targetoptions == original.targetoptions
    operation = max((o for o in CONTRACT if f"{name}_".startswith(f"{o}_")), key=len, default=None)
    if operation and (name == operation or name not in CALLS):
        case = inputs.CASES[-1] if name == operation else inputs.STRIDE_ONE[-1]
        verdict = check.try_case(operation, pasted, case)
        assert verdict, str(verdict)
        arguments = [*inputs.draw(operation, case, seed=1).values()]
    else:
        arguments = CALLS[name]
    options = {"stride": 1} if name in STRIDES else {}
    results = run(pasted, arguments, options), run(original, arguments, options)
    for got, expected in zip(*results, strict=True):
        # Not to the bit: code that was kept from an earlier run may add in another order.
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_no_kernel_needs_its_module():
    for module in MODULES:
        known = {"np", "numba", *dir(builtins)}
        for name, kernel in kernels_of(module).items():
            code = dis.get_instructions(kernel.py_func)
            used = {step.argval for step in code if step.opname == "LOAD_GLOBAL"}
            assert used <= known, f"{module.__name__}.{name} uses {used - known}"


def test_every_operation_of_every_strategy_is_among_them():
    tested = {getattr(module, name) for module, name in SINGLE}
    for strategy in ("loops", "vector"):  # those written with Numba, for one core
        assert {KERNELS[strategy].kernel(operation) for operation in CONTRACT} <= tested
