"""Answers to the exercises of lesson 04: right ones, and wrong ones with a word of the verdict."""

from cnnlab.lessons.lesson_04 import dense_share, momentum, multiply_adds


def in_two_lines(theta, v, g, rate, momentum):
    v[:] = momentum * v + g
    theta[:] = theta - rate * v


def in_place(theta, v, g, rate, momentum):
    v *= momentum
    v += g
    theta -= rate * v


def one_by_one(theta, v, g, rate, momentum):
    for i in range(theta.size):
        v[i] = momentum * v[i] + g[i]
        theta[i] -= rate * v[i]


def empty(theta, v, g, rate, momentum): ...


def renames(theta, v, g, rate, momentum):
    v = momentum * v + g
    theta -= rate * v


def old_velocity(theta, v, g, rate, momentum):
    theta -= rate * v
    v[:] = momentum * v + g


def without_momentum(theta, v, g, rate, momentum):
    v[:] = g
    theta -= rate * v


def average(theta, v, g, rate, momentum):
    v[:] = momentum * v + (1 - momentum) * g
    theta -= rate * v


def uphill(theta, v, g, rate, momentum):
    v[:] = momentum * v + g
    theta += rate * v


def changes_the_gradient(theta, v, g, rate, momentum):
    g += momentum * v
    v[:] = g
    theta -= rate * v


def other_arguments(theta, v, g):
    theta -= v


RIGHT = [
    (multiply_adds, 60_000 * (2 * 86_400 + 3 * 3_456 + 3 * 2_160)),
    (dense_share, 103_680 / (172_800 + 103_680)),
    (dense_share, 0.375),
    (momentum, in_two_lines),
    (momentum, in_place),
    (momentum, one_by_one),
]
WRONG = [
    (multiply_adds, ..., "not yet answered"),
    (multiply_adds, 2 * 86_400 + 3 * 3_456 + 3 * 2_160, "too small"),  # of one image
    (multiply_adds, 60_000 * (86_400 + 3_456 + 2_160), "too small"),  # forward only
    (multiply_adds, 60_000 * 3 * (86_400 + 3_456 + 2_160), "too large"),  # a gradient nobody needs
    (dense_share, ..., "not yet answered"),
    (dense_share, 34_560 / (86_400 + 34_560), "too small"),  # forward only
    (dense_share, 103_680 / (259_200 + 103_680), "too small"),  # also with respect to the image
    (dense_share, 3 * 2_160 / 189_648, "too small"),  # with pooling
    (dense_share, 37.5, "too large"),  # in per cent
    (momentum, empty, "not yet answered"),
    (momentum, renames, "v["),
    (momentum, old_velocity, "theta["),
    (momentum, without_momentum, "v["),
    (momentum, average, "v["),
    (momentum, uphill, "theta["),
    (momentum, changes_the_gradient, "g["),
    (momentum, other_arguments, "raised TypeError"),
]
