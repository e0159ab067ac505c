"""What a training step should take on a GPU: the emulator's counts, and figures of data sheets.

A model. No time here was measured.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cnnlab import cuda
from cnnlab.cuda.arguments import function_in
from cnnlab.cuda.step import OnDevice


class Gpu(NamedTuple):
    """Figures of a data sheet: multiprocessors, their cores, float32 FLOP/s, memory's bytes/s."""

    multiprocessors: int
    cores: int
    flops: float
    bandwidth: float

    @property
    def clock(self) -> float:
        """Cycles per second: a core does one multiply-add, two FLOP, in each."""
        return self.flops / (2 * self.multiprocessors * self.cores)


# NVIDIA's data sheets: T4 (2019), A100 SXM 40 GB (2020), H100 SXM (2023).
GPUS = {
    "T4": Gpu(40, 64, 8.1e12, 320e9),
    "A100": Gpu(108, 64, 19.5e12, 1555e9),
    "H100": Gpu(132, 128, 67e12, 3350e9),
}
LAUNCH, NODE = 5e-6, 2e-6  # seconds, assumed: a launch by itself, and a kernel of a graph
# Where the convolution's loads are: the source, and the function in it.
CONVOLUTION = {
    "conv_forward": ("conv", "conv_forward"),
    "conv_sigmoid": ("fused", "conv_sigmoid"),
    "image_gradients": ("step", "convolve"),
}


class Counts(NamedTuple):
    """Counts of one training step.

    Launches; bytes moved between processor and global memory, as if nothing were cached; sectors,
    and how few would do; turns of shared memory, and the most that one request takes;
    multiply-adds, and how many for each load in the convolution.
    """

    launches: int
    moved: float
    sectors: float
    ideal: float
    turns: float
    worst: int
    multiply_adds: float
    for_each_load: float


def counts(make: Callable[[int], OnDevice], batch: int, traced: Sequence[int] = ()) -> Counts:
    """The counts of a step of `make(batch)`, from a trace.

    With `traced`, two smaller batches are traced, and what grows between them goes on growing so:
    layer by layer, each image adds the same.
    """
    if not traced:
        return _traced(make, batch)
    small, large = traced
    low, high = _traced(make, small), _traced(make, large)
    values = {
        name: a + (b - a) * (batch - small) / (large - small)
        for name, a, b in zip(Counts._fields, low, high, strict=True)
    }
    same = {"worst": high.worst, "for_each_load": high.for_each_load}
    return Counts(**values | same)


def _traced(make: Callable[[int], OnDevice], batch: int) -> Counts:
    with cuda.traced() as traces:
        step = make(batch)
        step()
    sectors = ideal = turns = loads = worst = 0
    for trace in traces:
        for array in trace.arrays:
            if array.shared and len(result := trace.conflicts(array.name)):
                turns += float(result.sum() * trace.scale)
                worst = max(worst, int(result.max()))
            elif not array.shared:
                sectors += float(trace.sectors(array.name).sum() * trace.scale)
                ideal += float(trace.ideal(array.name).sum() * trace.scale)
        if place := CONVOLUTION.get(trace.kernel):
            loads += trace.loads(lines_of(*place))
    work = {name: n * batch for name, n in step.network.multiply_adds.items()}
    return Counts(
        len(traces), sum(trace.moved() for trace in traces), sectors, ideal, turns, worst,
        sum(work.values()), work["conv_forward"] / loads,
    )  # fmt: skip


def lines_of(source: str, function: str) -> range:
    """The lines of a function in a source of `cnnlab.cuda`."""
    text = (cuda.SOURCES / f"{source}.cu").read_text(encoding="utf-8")
    result = function_in(text, function)
    first = text.count("\n", 0, result.start()) + 1
    return range(first, first + result[0].count("\n") + 1)


def model(counted: Counts, gpu: Gpu, launch: float = LAUNCH, blocks: int = 0) -> dict[str, float]:
    """Seconds that a step should take, by what limits it, and `step`: the slowest of these.

    Work overlaps with asking for the next launches.

    `blocks` of one size share the step; a multiprocessor takes one after the other. 0: they are so
    many that each has its part. Left out are caches, waiting for memory and at barriers, and every
    instruction but multiply-adds.
    """
    part = math.ceil(blocks / gpu.multiprocessors) / blocks if blocks else 1 / gpu.multiprocessors
    work = {
        "memory": counted.moved / gpu.bandwidth,
        "arithmetic": counted.multiply_adds * part / (gpu.cores * gpu.clock),
        "shared memory": counted.turns * part / gpu.clock,
    }
    parts = {"launches": counted.launches * launch, **work}
    return {**parts, "step": max(parts.values())}
