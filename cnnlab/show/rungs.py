"""The kernels of an operation in CUDA C side by side, by what this machine can say of them."""

from collections.abc import Callable, Mapping

from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.bench import traffic
from cnnlab.bench.event_times import event_times
from cnnlab.show import plots
from cnnlab.show.challenge import bytes_moved


def rungs(operation: str, functions: Mapping[str, Callable], *, batch: int = 256) -> Axes:
    """Draw kernels side by side: on a GPU their times, on the emulator the bytes that they move.

    The emulator's time says nothing about a GPU. The times are those of `batch` images whose arrays
    stay there, the bytes those of one image, as if nothing were cached.
    """
    if cuda.gpu()[0]:
        timings = event_times(operation, functions, batch)
        best = min(timings, key=lambda name: timings[name].median)
        title = f"{operation}, on {cuda.where()}: the fastest is “{best}”"
        return plots.speedups(timings, next(iter(timings)), per=f"batch of {batch}", title=title)
    found = traffic.count(operation, functions)
    least = min(found.moved.values())
    best = [name for name, moved in found.moved.items() if moved == least]
    who = f"“{best[0]}” moves" if len(best) == 1 else f"{len(best)} of {len(found.moved)} move"
    times = least / found.least
    title = f"{operation}: {who} the least, {times:.3g} times what any kernel must"
    return bytes_moved(found, title=title)
