"""Whole training steps on one core, for networks of the report's form."""

import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels.vector.activation import cross_entropy, sigmoid, sigmoid_backward
from cnnlab.kernels.vector.conv import conv_backward_bias, conv_backward_weights, conv_forward
from cnnlab.kernels.vector.dense import (
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
)
from cnnlab.kernels.vector.pool import (
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
)
from cnnlab.kernels.vector.side_by_side import many_images, scratch_memory
from cnnlab.kernels.workers import ALONE, FEW, allreduce, share
from cnnlab.runtime.arguments import at_least


class Weights(NamedTuple):
    """The parameters of a network of the report's form, or their gradients."""

    conv_w: np.ndarray
    conv_b: np.ndarray
    pool_w: np.ndarray
    pool_b: np.ndarray
    dense_w: np.ndarray
    dense_b: np.ndarray


class Buffer(NamedTuple):
    """Parameters or gradients as one vector, and as views of it: `network.Parameters`, compiled."""

    flat: np.ndarray
    arrays: Weights


def loss_and_gradients(params, x, labels, grads, chosen=None):
    """Loss of a batch x (N,C,H,W) with labels (N), and its gradients, summed over the batch.

    `params` and `grads` are the arrays of `Weights`. With `chosen`, the batch is those of the
    images x and labels.
    """
    chosen = np.arange(len(x)) if chosen is None else chosen
    weights, grads = Weights(*params), Weights(*grads)
    if len(chosen) < FEW:
        return few_images(weights, grads, x[chosen], labels[chosen])
    return many_images(weights, grads, x, labels, chosen, own_scratch(weights, x))


def sgd_steps(params, grads, images, labels, order, batch, rate, workers=None):
    """Train on the images (M,C,H,W) number `order`, a batch at a time; returns the summed loss.

    Many steps, with no Python between them. Of several `workers`, this one takes its share of each
    batch, and the loss is that of its shares; `grads` must then lie where they add up. The last
    step is left in `grads`. Raises ValueError for a batch of no images.
    """
    at_least("batch", batch, 1)
    workers = workers or ALONE
    last = order.size % batch or min(batch, order.size)
    few = True if last // workers.size < FEW else None
    return sgd_loop(
        Buffer(params.flat, Weights(*params)), Buffer(grads.flat, Weights(*grads)),
        images, labels, order, batch, rate, own_scratch(params, images), few, workers,
    )  # fmt: skip


def own_scratch(params, images):
    """Scratch memory of the calling thread."""
    shapes = tuple(array.shape for array in params)
    return scratch_memory(threading.get_ident(), (), images.shape[1:], shapes)


@numba.njit(nogil=True)
def sgd_loop(params, grads, images, labels, order, batch, rate, scratch, few, workers):
    """Steps of stochastic gradient descent, as one of `workers`; the loss of this one's shares."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        mine = share(chosen, workers, few)
        loss += gradients(params.arrays, grads.arrays, images, labels, mine, scratch, few)
        total = allreduce(grads.flat, workers)
        subtract(params.flat, total, np.float32(rate / chosen.size))
    return loss


@numba.njit(inline="always")
def gradients(weights, grads, images, labels, chosen, scratch, few):
    """Loss of the images number `chosen` (N), and their gradients, both summed over the images.

    `few` is None where there are never fewer than FEW images: Numba then compiles `many_images`
    alone, in half the time.
    """
    if few is None or chosen.size >= FEW:
        return many_images(weights, grads, images, labels, chosen, scratch)
    return few_images(weights, grads, images[chosen], labels[chosen])


@numba.njit
def subtract(params, grads, rate):
    """Subtract rate × gradient in place: params (M), grads (M), which become the step."""
    for i in range(grads.size):  # two loops become vector instructions here, and one does not
        grads[i] *= rate
    for i in range(grads.size):
        params[i] -= grads[i]


@numba.njit
def few_images(weights, grads, x, labels):
    """Loss and gradients of a batch x (N,C,H,W) by the contract's functions, one after the other.

    z are preactivations, y activations, d gradients with respect to z.
    """
    N, F, K, S = len(x), len(weights.conv_w), weights.conv_w.shape[2], weights.pool_w.shape[1]
    P, Q = x.shape[2] - K + 1, x.shape[3] - K + 1
    z1, z2 = np.empty((N, F, P, Q), np.float32), np.empty((N, F, P // S, Q // S), np.float32)
    z3 = np.empty((N, len(weights.dense_b)), np.float32)
    y1, y2, y3 = np.empty_like(z1), np.empty_like(z2), np.empty_like(z3)
    dy1, dy2 = np.empty_like(z1), np.empty_like(z2)
    rows = N, weights.dense_w.shape[1]
    y2_rows, dy2_rows = y2.reshape(rows), dy2.reshape(rows)
    d1, d2, d3 = z1, z2, z3  # in the place of z, which backward does not need

    conv_forward(x, weights.conv_w, weights.conv_b, z1)
    sigmoid(z1, y1)
    pool_forward(y1, weights.pool_w, weights.pool_b, z2, S)
    sigmoid(z2, y2)
    dense_forward(y2_rows, weights.dense_w, weights.dense_b, z3)
    sigmoid(z3, y3)
    loss = cross_entropy(y3, labels, d3)
    dense_backward_weights(y2_rows, d3, grads.dense_w)
    dense_backward_bias(d3, grads.dense_b)
    dense_backward_input(d3, weights.dense_w, dy2_rows)
    sigmoid_backward(y2, dy2, d2)
    pool_backward_weights(y1, d2, grads.pool_w, S)
    pool_backward_bias(d2, grads.pool_b)
    pool_backward_input(d2, weights.pool_w, dy1, S)
    sigmoid_backward(y1, dy1, d1)
    conv_backward_weights(x, d1, grads.conv_w)
    conv_backward_bias(d1, grads.conv_b)
    return loss
