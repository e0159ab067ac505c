"""Answers to the exercises of lesson 06: right ones, and wrong ones with a word of the verdict."""

import numba
import numpy as np

from cnnlab.kernels.registers import LANES, block, load, store
from cnnlab.lessons.lesson_06 import (
    loads_for_each,
    pixels_that_fit,
    sums_under_way,
    vector_sigmoid_backward,
)


@numba.njit
def in_plain_loops(y, dy, dz):
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for i in range(y.size):
        dz[i] = dy[i] * (y[i] * (np.float32(1) - y[i]))


@numba.njit(error_model="numpy")
def blocks_only(y, dy, dz):
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    one, four = np.float32(1), block(np.float32(0), 4)
    for m in range(0, y.size // LANES - 3, 4):
        a = load(y, m, four)
        store(dz, m, load(dy, m, four) * (a * (one - a)))


@numba.njit
def forgets_dy(y, dy, dz):
    y, dz = y.reshape(y.size), dz.reshape(dz.size)
    for i in range(y.size):
        dz[i] = y[i] * (np.float32(1) - y[i])


def without_a_compiler(y, dy, dz):
    dz[...] = dy * y * (1 - y)


RIGHT = [
    (sums_under_way, lambda latency, per_cycle: per_cycle * latency),
    (pixels_that_fit, lambda registers, row: min(row, registers - 2)),
    (loads_for_each, lambda pixels, maps: 1 / maps + 1 / pixels),
    (vector_sigmoid_backward, in_plain_loops),
]
WRONG = [
    (sums_under_way, lambda latency, per_cycle: latency, "too"),
    (sums_under_way, lambda latency, per_cycle: latency + per_cycle, "too"),
    (sums_under_way, 8, "expected a function"),
    (pixels_that_fit, lambda registers, row: min(registers, row), "too"),
    (pixels_that_fit, lambda registers, row: registers - 2, "too"),
    (loads_for_each, lambda pixels, maps: (pixels + 1) / pixels, "too"),
    (vector_sigmoid_backward, blocks_only, "not yet right"),
    (vector_sigmoid_backward, forgets_dy, "not yet right"),
    (vector_sigmoid_backward, without_a_compiler, "plain Python"),
]
