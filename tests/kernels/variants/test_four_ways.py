"""Four ways to convolve: right, standing alone, with the memory that they say."""

import inspect
import tracemalloc

import numba
import pytest

from cnnlab import check
from cnnlab.check import inputs
from cnnlab.kernels.variants import convolutions
from cnnlab.kernels.variants.convolutions import WAYS

OPERATIONS = ["conv_forward", "conv_backward_weights", "conv_backward_input"]
ROUNDING = {"FFT": 1, "Winograd": 100}  # times that of a sum, see `check.try_case`
EVERY = [(name, operation) for name in WAYS for operation in OPERATIONS]
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size


@pytest.mark.parametrize("name, operation", EVERY)
def test_a_way_agrees_with_the_reference(name, operation):
    function, extra = getattr(WAYS[name], operation), ROUNDING.get(name, 0)
    verdict = check.kernel(operation, function, cases=inputs.TRANSFORMED, normwise=extra)
    assert verdict, str(verdict)


@pytest.mark.parametrize("name, operation", [each for each in EVERY if each[0] != "vector"])
@pytest.mark.parametrize("sizes", [(16, 16, 16, 28, 30, 3), (32, 2, 32, 26, 28, 5)])
def test_a_way_needs_the_workspace_that_it_says(name, operation, sizes, monkeypatch):
    if name != "FFT":  # what compiled code allocates is not traced
        for module in (convolutions, convolutions):
            for each, kernel in list(vars(module).items()):
                if isinstance(kernel, numba.core.dispatcher.Dispatcher):
                    monkeypatch.setattr(module, each, traced(kernel))
    arrays = [*inputs.draw(operation, inputs.case("", *sizes)).values()]
    way = WAYS[name]
    getattr(way, operation)(*arrays)  # the matrices are made, and the plans of the transform
    tracemalloc.start()
    getattr(way, operation)(*arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = way.workspace(operation, *sizes)
    assert 0.6 * said <= peak <= 1.01 * said + BUFFERS


def traced(kernel):
    """A compiled function whose results are copied, so that they are counted."""

    def call(*arguments):
        made = kernel(*arguments)
        return made if made is None else made.copy()

    return call


@pytest.mark.parametrize(
    "module, way", [(convolutions, "im2col"), (convolutions, "fft"), (convolutions, "winograd")]
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_way_runs_from_its_file_alone(module, way, operation):
    source, alone = inspect.getsource(module), {}
    assert "cnnlab" not in source
    exec(source, alone)
    case = inputs.TRANSFORMED[4]
    assert check.try_case(operation, alone[f"{operation}_{way}"], case, normwise=100)
