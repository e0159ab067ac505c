"""Answers to the exercises of lesson 04: right ones, and wrong ones with a word of the verdict."""

from cnnlab.lessons.lesson_04 import dense_share, momentum, multiply_adds


def in_place(theta, v, g, rate, momentum):
    v *= momentum
    v += g
    theta -= rate * v


def empty(theta, v, g, rate, momentum): ...


def renames(theta, v, g, rate, momentum):
    v = momentum * v + g
    theta -= rate * v


def old_velocity(theta, v, g, rate, momentum):
    theta -= rate * v
    v[:] = momentum * v + g


def average(theta, v, g, rate, momentum):
    v[:] = momentum * v + (1 - momentum) * g
    theta -= rate * v


def changes_the_gradient(theta, v, g, rate, momentum):
    g += momentum * v
    v[:] = g
    theta -= rate * v


def other_arguments(theta, v, g):
    theta -= v


RIGHT = [
    (multiply_adds, 60_000 * (2 * 86_400 + 3 * 3_456 + 3 * 2_160)),
    (dense_share, 103_680 / (172_800 + 103_680)),
    (momentum, in_place),
]
WRONG = [
    (multiply_adds, ..., "not yet answered"),
    (multiply_adds, 2 * 86_400 + 3 * 3_456 + 3 * 2_160, "too small"),  # of one image
    (multiply_adds, 60_000 * 3 * (86_400 + 3_456 + 2_160), "too large"),  # a gradient nobody needs
    (dense_share, 103_680 / (259_200 + 103_680), "too small"),  # also with respect to the image
    (dense_share, 37.5, "too large"),  # in per cent
    (momentum, empty, "not yet answered"),
    (momentum, renames, "v["),
    (momentum, old_velocity, "theta["),
    (momentum, average, "v["),
    (momentum, changes_the_gradient, "g["),
    (momentum, other_arguments, "raised TypeError"),
]
