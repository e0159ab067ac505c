"""Times of kernels on arrays that stay on the GPU, taken by the GPU's own events."""

import functools
from collections.abc import Callable, Mapping

from cnnlab import cuda
from cnnlab.bench.challenge import takes_stride
from cnnlab.bench.measure import Timing
from cnnlab.bench.operations import checked, layer_arguments


def event_times(
    operation: str, functions: Mapping[str, Callable], batch: int = 256, repeats: int = 15
) -> dict[str, Timing]:
    """The seconds between two events around each function's launches, by name, taking turns.

    The functions are checked first, on the same arrays, and warm then. Needs CuPy and a GPU.
    """
    arrays, options = layer_arguments(operation, batch)
    there = [cuda.array_module().asarray(array) for array in arrays]
    calls = {
        name: functools.partial(function, *there, *(options if takes_stride(function) else ()))
        for name, function in functions.items()
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():

        def fetched(*_, call=call) -> None:
            call()
            arrays[-1][...] = there[-1].get()

        checked(operation, name, fetched, arrays, options)
    for _ in range(repeats):
        for name, call in calls.items():
            samples[name].append(cuda.seconds(call))
    return {name: Timing(name, tuple(seconds)) for name, seconds in samples.items()}
