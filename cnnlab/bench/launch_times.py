"""When the host asks for each launch of a step, and when the device works on it.

On a GPU that is measured. Elsewhere it is a model: the emulator counts the bytes, a data sheet has
the bandwidth, and an assumed price of a launch does the rest.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cnnlab import cuda
from cnnlab.bench.gpu_roofline import GPUS, LAUNCH
from cnnlab.cuda.resident import OnDevice

MODEL = "T4"
FEW = 2, 4  # images of the batches that are traced: each image adds the same
COPIES = 20  # of a launch in a graph, so that asking for it does not count


class Cost(NamedTuple):
    """A launch of a step: bytes moved, as if nothing were cached, and seconds of the device."""

    kernel: str
    moved: float
    seconds: float


class Launch(NamedTuple):
    """A launch: when the host asks for it and goes on, when the device begins and ends; seconds."""

    kernel: str
    asked: float
    returned: float
    begin: float
    end: float


def said() -> str:
    """Where the times come from, in a line."""
    if cuda.gpu()[0]:
        return f"measured on {cuda.where()}: the host's clock, and events after each launch"
    asking = f"{1e6 * LAUNCH:g} µs to ask for a launch"
    return f"a model, not measured: {asking}, and bytes by the bandwidth of a {MODEL}"


def costs(make: Callable[[int], OnDevice], batches: Sequence[int]) -> dict[int, list[Cost]]:
    """What each launch of a step of `make(batch)` costs, in order, for each of the batches."""
    small, large = (_moved(make, n) for n in FEW)
    found = {}
    for batch in batches:
        grown = (batch - FEW[0]) / (FEW[1] - FEW[0])
        moved = [
            low + (high - low) * grown
            for low, high in zip(small.values(), large.values(), strict=True)
        ]
        if cuda.gpu()[0]:
            seconds = _measured(make(batch))
        else:
            seconds = [n / GPUS[MODEL].bandwidth for n in moved]
        names = (kernel for _, kernel in small)
        found[batch] = [Cost(*one) for one in zip(names, moved, seconds, strict=True)]
    return found


def timeline(
    make: Callable[[int], OnDevice], batch: int, found: Sequence[Cost], *, waits: bool = False
) -> list[Launch]:
    """The launches of a step of `make(batch)` over time; `found` are their costs.

    `waits` says whether the host waits after each launch, and not only at the end.
    """
    if not cuda.gpu()[0]:
        return modelled(found, waits=waits)
    step = make(batch)
    step()  # warm
    calls, launches, free = [call for stage in step.stages for call in stage], [], 0.0
    for cost, (asked, returned, end) in zip(found, cuda.stamps(calls, waits), strict=True):
        begin = max(asked, free, end - cost.seconds)
        launches.append(Launch(cost.kernel, asked, returned, begin, end))
        free = end
    return launches


def modelled(found: Sequence[Cost], launch: float = LAUNCH, *, waits: bool = False) -> list[Launch]:
    """The same without a GPU: asking takes `launch` seconds, and the device works in order."""
    launches, now, free = [], 0.0, 0.0
    for cost in found:
        begin = max(now + launch, free)
        free = begin + cost.seconds
        launches.append(Launch(cost.kernel, now, now + launch, begin, free))
        now = free if waits else now + launch
    return launches


def busy(launches: Sequence[Launch]) -> float:
    """The share of the time, from the first asking to the last end, in which the device works."""
    whole = max(one.end for one in launches) - launches[0].asked
    return sum(one.end - one.begin for one in launches) / whole


def _moved(make: Callable[[int], OnDevice], batch: int) -> dict[tuple[int, str], int]:
    """The bytes that each launch of a step moves, by number and kernel."""
    with cuda.traced() as traces:
        make(batch)()
    return {(number, trace.kernel): trace.moved() for number, trace in enumerate(traces)}


def _measured(step: OnDevice) -> list[float]:
    """Seconds of each launch by events around a graph of its copies; parameters stay."""
    found = []
    with step.undone():
        step()
        for call in (call for stage in step.stages for call in stage):
            copies = cuda.graph([[call]] * COPIES)
            copies()
            samples = [cuda.seconds(copies) for _ in range(7)]
            found.append(statistics.median(samples) / COPIES)
    return found
