"""Answers to the exercises of lesson 06: right ones, and wrong ones with a word of the verdict."""

import numba
import numpy as np

from cnnlab.kernels.registers import LANES, block, load, store
from cnnlab.lessons.lesson_06 import (
    best_tile,
    challenge_sigmoid_backward,
    pixels_that_fit,
    which_spills,
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


def best_by_rows(registers):
    fits = [(m, (registers - 1) // (m + 1)) for m in range(1, registers)]
    return min((f for f in fits if f[0] * f[1] >= 8), key=lambda f: (f[0] + f[1]) / (f[0] * f[1]))


RIGHT = [
    (which_spills, "B"),
    (pixels_that_fit, lambda registers, row: min(row, registers - 2)),
    (best_tile, best_by_rows),
    (challenge_sigmoid_backward, in_plain_loops),
]
WRONG = [
    (which_spills, "A", "A"),
    (which_spills, "C", "expected one of A, B"),
    (pixels_that_fit, lambda registers, row: min(registers, row), "too"),
    (pixels_that_fit, lambda registers, row: registers - 2, "too"),
    (best_tile, lambda registers: (8, (registers - 1) // 9), "will do"),
    (best_tile, lambda registers: (4, registers // 4), "and need"),
    (best_tile, lambda registers: (1, 2), "2 sums"),
    (challenge_sigmoid_backward, blocks_only, "not yet right"),
    (challenge_sigmoid_backward, forgets_dy, "not yet right"),
    (challenge_sigmoid_backward, without_a_compiler, "plain Python"),
]
