"""Answers to the exercises of lesson 04: right ones, and wrong ones with a word of the verdict."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.lessons.lesson_04 import accumulated, cause, momentum


def pieces(params, x, t, piece):
    """The loss and gradients of each piece, summed over its images, and how many these are."""
    for first in range(0, len(x), piece):
        some, grads = slice(first, first + piece), params.network.zeros()
        loss = loss_and_gradients(KERNELS["vector"], params, x[some], t[some], grads)
        yield loss, grads.flat, len(t[some])


def one_step(params, x, t, piece, rate):
    loss, total = 0.0, np.zeros_like(params.flat)
    for part, g, _ in pieces(params, x, t, piece):
        loss += part
        total += g
    params.flat[:] -= rate / len(x) * total
    return loss / len(x)


def a_step_for_each(params, x, t, piece, rate):
    loss = 0.0
    for part, g, n in pieces(params, x, t, piece):
        loss += part
        params.flat[:] -= rate / n * g
    return loss / len(x)


def average_of_averages(params, x, t, piece, rate):
    loss, means = 0.0, []
    for part, g, n in pieces(params, x, t, piece):
        loss += part
        means.append(g / n)
    params.flat[:] -= np.float32(rate) * np.mean(means, axis=0)
    return loss / len(x)


def last_piece_only(params, x, t, piece, rate):
    loss = 0.0
    for part, g, _ in pieces(params, x, t, piece):
        loss += part
        last = g
    params.flat[:] -= rate / len(x) * last
    return loss / len(x)


def full_pieces_only(params, x, t, piece, rate):
    whole = max(len(x) // piece * piece, 1)
    return one_step(params, x[:whole], t[:whole], piece, rate)


def sum_of_losses(params, x, t, piece, rate):
    return one_step(params, x, t, piece, rate) * len(x)


def no_loss(params, x, t, piece, rate):
    one_step(params, x, t, piece, rate)


def in_place(theta, v, g, rate, mu):
    v *= mu
    v += g
    theta -= rate * v


def empty(theta, v, g, rate, mu): ...


def renames(theta, v, g, rate, mu):
    v = mu * v + g
    theta -= rate * v


def old_velocity(theta, v, g, rate, mu):
    theta -= rate * v
    v[:] = mu * v + g


def average(theta, v, g, rate, mu):
    v[:] = mu * v + (1 - mu) * g
    theta -= rate * v


def changes_the_gradient(theta, v, g, rate, mu):
    g += mu * v
    v[:] = g
    theta -= rate * v


def other_arguments(theta, v, g):
    theta -= v


RIGHT = [(cause, "divided by the full batch"), (accumulated, one_step), (momentum, in_place)]
WRONG = [
    (cause, ..., "not yet answered"),
    (cause, "never shuffled", "never shuffled"),
    (cause, "the rate", "expected one of"),
    (cause, "joined to another", "joined to another"),
    (accumulated, a_step_for_each, "48 images in pieces of 16"),
    (accumulated, average_of_averages, "53 images in pieces of 16"),
    (accumulated, last_piece_only, "48 images in pieces of 16"),
    (accumulated, full_pieces_only, "53 images in pieces of 16"),
    (accumulated, sum_of_losses, "expected the mean loss"),
    (accumulated, no_loss, "expected the mean loss"),
    (momentum, empty, "not yet answered"),
    (momentum, renames, "v["),
    (momentum, old_velocity, "theta["),
    (momentum, average, "v["),
    (momentum, changes_the_gradient, "g["),
    (momentum, other_arguments, "raised TypeError"),
]
