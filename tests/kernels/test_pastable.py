"""Every kernel runs from its source alone, where nothing but NumPy and Numba is imported.

Those that lessons show are compiled from their source there, and checked.
"""

import builtins
import dis
import functools
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from cnnlab import check, kernels
from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT, KERNELS, registers
from cnnlab.kernels.contract import STRIDES
from cnnlab.kernels.vector import lanes, side_by_side, steps
from cnnlab.network import report_network
from tests.source import NOTEBOOKS

IMPORTS = "import numpy as np\nimport numba\nfrom numba import njit, prange\n"
# Not for pasting: steps made of other kernels, what compiled kernels call.
NOT_ALONE = r"registers|allreduce|workers|vector\.(steps|side_by_side)|threads\.steps"
ON_BLOCKS = ("logistic", "conv_pixels", "tap_products")  # what kernels with vectors have in common


def kernels_of(module):
    """The module's own Numba functions, by name."""
    return {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, CPUDispatcher) and function.py_func.__module__ == module.__name__
    }


MODULES = [
    importlib.import_module(result.name)
    for result in pkgutil.walk_packages(kernels.__path__, "cnnlab.kernels.")
    if not re.fullmatch(NOT_ALONE, result.name.removeprefix("cnnlab.kernels."))
]
SINGLE = [
    (module, name) for module in MODULES for name in kernels_of(module) if name not in ON_BLOCKS
]
LESSONS = "".join(file.read_text("utf-8") for file in NOTEBOOKS.glob("*.ipynb"))
IN_NO_LESSON = [
    pytest.param(module, name, id=short)
    for module, name in SINGLE
    if f'"kernel:{(short := f"{module.__name__}.{name}".removeprefix("cnnlab.kernels."))}"'
    not in LESSONS
]


@functools.cache
def with_vectors():
    """What `lanes` needs besides: `vector_registers`, and what its kernels have in common."""
    names = {}
    sources = [registers, *(vars(lanes)[name].py_func for name in ON_BLOCKS)]
    exec("\n".join([IMPORTS, *map(inspect.getsource, sources)]), names)
    return names


def random(*shape):
    return np.random.default_rng(0).random(shape).astype(np.float32)


@pytest.fixture(scope="module")
def calls():
    """Arguments for each kernel by name: one of check's cases, or those of a training step."""
    places = np.array([0, 3, 8, 1, 5, 6] * 2).reshape(2, 1, 2, 3)
    result = {
        "max_pool_forward": (random(2, 1, 7, 11), random(2, 1, 2, 3), 0 * places, 3),
        "max_pool_backward": (random(2, 1, 2, 3), places, random(2, 1, 7, 11), 3),
        "fold": (random(3, 3, 3, 2, 3, 4), random(2, 3, 5, 6)),
    }

    def recording(name, function):
        def record(*arguments):
            result.setdefault(name, copies(arguments))
            return function(*arguments)

        return record

    net = report_network(2, 14, 15, filters=3, kernel=6, pool=2, classes=4)
    params = net.parameters()
    params.flat += 0.1
    with pytest.MonkeyPatch.context() as patch:
        for module in (steps, side_by_side, lanes):  # steps run in Python and show their calls
            for name, function in list(vars(module).items()):
                if isinstance(function, CPUDispatcher) and name not in ON_BLOCKS:
                    composed = function.py_func.__module__ in (
                        steps.__name__,
                        side_by_side.__name__,
                    )
                    plain = function.py_func if composed else recording(name, function)
                    patch.setattr(module, name, plain)
        for n in (3, 19):
            labels = np.arange(n) % net.classes
            images = random(n, *net.image_shape)
            steps.loss_and_gradients(params.arrays, images, labels, net.zeros().arrays)
    return result


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
def test_a_kernel_runs_from_its_source_alone(module, name, calls):
    original = getattr(module, name)
    alone = dict(with_vectors()) if module is lanes else {}
    exec(IMPORTS + inspect.getsource(original.py_func), alone)
    pasted = alone[name]
    assert pasted.targetoptions == original.targetoptions
    operation = max((o for o in CONTRACT if f"{name}_".startswith(f"{o}_")), key=len, default=None)
    if operation and (name == operation or name not in calls):
        case = inputs.CASES[-1] if name == operation else inputs.STRIDE_ONE[-1]
        verdict = check.try_case(operation, pasted, case)
        assert verdict, str(verdict)
        arguments = [*inputs.draw(operation, case, seed=1).values()]
    else:
        arguments = calls[name]
    options = {"stride": 1} if name in STRIDES else {}
    results = run(pasted, arguments, options), run(original, arguments, options)
    for got, expected in zip(*results, strict=True):
        # Not to the bit: code that was kept from an earlier run may add in another order.
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_no_kernel_needs_its_module():
    for module in MODULES:
        known = {"np", "numba", *dir(builtins)}
        known |= with_vectors().keys() if module is lanes else set()
        for name, kernel in kernels_of(module).items():
            code = dis.get_instructions(kernel.py_func)
            used = {step.argval for step in code if step.opname == "LOAD_GLOBAL"}
            assert used <= known, f"{module.__name__}.{name} uses {used - known}"


def test_every_operation_of_every_strategy_is_among_them():
    tested = {getattr(module, name) for module, name in SINGLE}
    for strategy in ("loops", "vector", "threads"):  # those written with Numba
        assert {KERNELS[strategy].kernel(operation) for operation in CONTRACT} <= tested
