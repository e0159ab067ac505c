"""What a training step should take on a GPU: the emulator's counts, and figures of data sheets.

A model. No time here was measured.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from cnnlab import cuda
from cnnlab.cuda.arguments import function_in
from cnnlab.cuda.emulator.cache import distinct, dram
from cnnlab.cuda.step import OnDevice


class Gpu(NamedTuple):
    """Figures of a data sheet: multiprocessors, their cores, float32 FLOP/s, DRAM's bytes/s.

    `cache` is the bytes of its L2.
    """

    multiprocessors: int
    cores: int
    flops: float
    bandwidth: float
    cache: int

    @property
    def clock(self) -> float:
        """Cycles per second: a core does one multiply-add, two FLOP, in each."""
        return self.flops / (2 * self.multiprocessors * self.cores)


# NVIDIA's data sheets: T4 (2019), A100 SXM 40 GB (2020), H100 SXM (2023).
GPUS = {
    "T4": Gpu(40, 64, 8.1e12, 320e9, 4 << 20),
    "A100": Gpu(108, 64, 19.5e12, 1555e9, 40 << 20),
    "H100": Gpu(132, 128, 67e12, 3350e9, 50 << 20),
}
LAUNCH, NODE = 5e-6, 2e-6  # seconds, assumed: a launch by itself, and a kernel of a graph
MOST = 1_000_000  # accesses of a launch to trace, see `cnnlab.cuda.traced`
# Where the convolution's loads are: the source, and the function in it.
CONVOLUTION = {
    "conv_forward": ("conv", "conv_forward"),
    "conv_sigmoid": ("fused", "conv_sigmoid"),
    "image_gradients": ("step", "convolve"),
}


class Counts(NamedTuple):
    """Counts of one training step.

    Launches; the bytes of all sectors that warps request; those of the distinct sectors, each once
    in every launch that touches it; those between DRAM and an L2, by its size, see
    `cnnlab.cuda.emulator.cache.dram`; turns of shared memory, and the most that one request takes;
    multiply-adds, and how many for each load in the convolution.
    """

    launches: int
    requested: float
    distinct: int
    dram: dict[int, int]
    turns: float
    worst: int
    multiply_adds: int
    for_each_load: float


def counts(make: Callable[[int], OnDevice], batch: int) -> Counts:
    """The counts of a step of `make(batch)`.

    For requests, turns and loads some of a launch's blocks, which do equal work, stand for all.
    """
    with cuda.traced(MOST) as traces:
        step = make(batch)
        step()
    turns = loads = worst = 0
    for trace in traces:
        for array in trace.arrays:
            if array.shared and len(result := trace.conflicts(array.name)):
                turns += float(result.sum() * trace.scale)
                worst = max(worst, int(result.max()))
        if place := CONVOLUTION.get(trace.kernel):
            loads += trace.loads(lines_of(*place))
    work = {name: n * batch for name, n in step.network.multiply_adds.items()}
    return Counts(
        launches=len(traces),
        requested=sum(trace.requested() for trace in traces),
        distinct=sum(distinct([trace]) for trace in traces),
        dram={gpu.cache: int(dram(traces, gpu.cache).sum()) for gpu in GPUS.values()},
        turns=turns,
        worst=worst,
        multiply_adds=sum(work.values()),
        for_each_load=work["conv_forward"] / loads,
    )


def lines_of(source: str, function: str) -> range:
    """The lines of a function in a source of `cnnlab.cuda`."""
    text = (cuda.SOURCES / f"{source}.cu").read_text(encoding="utf-8")
    result = function_in(text, function)
    first = text.count("\n", 0, result.start()) + 1
    return range(first, first + result[0].count("\n") + 1)


def model(counted: Counts, gpu: Gpu, launch: float = LAUNCH, blocks: int = 0) -> dict[str, float]:
    """Seconds that a step should take, by what limits it, and `step`: the slowest of these.

    `memory` is the modelled bytes of DRAM at the bandwidth of the data sheet, `launches` the price
    of a launch for each: work overlaps with asking for the next launches, so the slower of the two
    counts, not both. `arithmetic` is the multiply-adds at the peak, `shared memory` its turns, one
    in a cycle.

    `blocks` of one size share the step; a multiprocessor takes one after the other. 0: they are so
    many that each has its part. Left out are what L1 and L2 need to serve the requests, waiting for
    memory and at barriers, and every instruction but multiply-adds. Raises KeyError for a GPU whose
    L2 has a size that was not counted for.
    """
    part = math.ceil(blocks / gpu.multiprocessors) / blocks if blocks else 1 / gpu.multiprocessors
    work = {
        "memory": counted.dram[gpu.cache] / gpu.bandwidth,
        "arithmetic": counted.multiply_adds * part / (gpu.cores * gpu.clock),
        "shared memory": counted.turns * part / gpu.clock,
    }
    parts = {"launches": counted.launches * launch, **work}
    return {**parts, "step": max(parts.values())}
