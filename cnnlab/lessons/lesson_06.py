"""The exercises of lesson 06."""

import numba
import numpy as np

from cnnlab.check import kinds, machine_code
from cnnlab.kernels.registers import LANES, block, load, store


def draw_pipeline(rng):
    """Cycles until a multiply-add is done, and how many begin in each cycle."""
    return {"latency": int(rng.integers(2, 9)), "per_cycle": int(rng.integers(1, 5))}


@kinds.formula(
    draw_pipeline,
    "Count what has begun and is not yet done.",
    "In each cycle `per_cycle` begin, and each is under way for `latency` cycles.",
)
def sums_under_way(latency, per_cycle):
    """Throughput times latency: Little's law, in a core as at a till."""
    return latency * per_cycle


def draw_registers(rng):
    """The registers of a processor, and the pixels of a row."""
    return {"registers": int(rng.integers(4, 65)), "row": int(rng.integers(4, 100))}


@kinds.formula(
    draw_registers,
    "The loop of conv_pixels also needs a register for the weight and one for the pixel.",
    "A block must not be longer than the row either.",
)
def pixels_that_fit(registers, row):
    """The rest is for sums; of 16 registers the table takes 12, which divides a row of 24."""
    return min(registers - 2, row)


def draw_block(rng):
    """How many pixels of how many maps a kernel keeps at once."""
    return {"pixels": int(rng.integers(1, 13)), "maps": int(rng.integers(1, 7))}


@kinds.formula(
    draw_block,
    "For one tap: what is loaded, and how many multiply-adds are done with it?",
    "Each pixel is loaded once and serves all maps; each map's weight is loaded once, too.",
)
def loads_for_each(pixels, maps):
    """Six pixels of two maps: 8 loads for 12 multiply-adds, where one map takes 7 for 6."""
    return (pixels + maps) / (pixels * maps)


@kinds.kernel(
    "sigmoid_backward",
    "For which sizes is it right already? The loop leaves out what is no whole block of four.",
    "After the blocks of four come single vectors, `block(…, 1)`; after those, number by number.",
    by=machine_code.kernel,
)
@numba.njit(error_model="numpy")
def vector_sigmoid_backward(y, dy, dz):
    """Blocks of four vectors, then single vectors, then what is left of one."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    one, four, single = np.float32(1), block(np.float32(0), 4), block(np.float32(0), 1)
    whole = y.size // LANES
    for m in range(0, whole - 3, 4):
        a = load(y, m, four)
        store(dz, m, load(dy, m, four) * (a * (one - a)))
    for m in range(whole - whole % 4, whole):
        a = load(y, m, single)
        store(dz, m, load(dy, m, single) * (a * (one - a)))
    for i in range(whole * LANES, y.size):
        dz[i] = dy[i] * (y[i] * (one - y[i]))
