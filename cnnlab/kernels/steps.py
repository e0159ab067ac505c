"""Whole training steps of any network, in compiled code that reads the network's programme.

A block of images, two vectors of LANES, goes forward and backward before the next, so that its
activations stay in the cache. Nothing is compiled for a network, and a step allocates nothing.
"""

import functools
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels import lanes
from cnnlab.kernels.few import few_images
from cnnlab.kernels.lanes import LINEAR, RELU, SIGMOID
from cnnlab.kernels.programme import CONV, DENSE, MAX_POOL, MOVE, programme
from cnnlab.kernels.registers import LANES
from cnnlab.kernels.workers import ALONE, FEW, allreduce, share
from cnnlab.runtime.arguments import at_least


class Memory(NamedTuple):
    """One worker's memory for a network, or with a first index that of several workers.

    For each of two vectors of images, `flat` has the arrays of a programme, and `numbers` the
    places of the images in its first LANES, a place of `lanes.to_lanes` and from 2 LANES on their
    labels. `sums` has gradients of each lane, `factors` those of a loss.
    """

    flat: np.ndarray
    sums: np.ndarray
    numbers: np.ndarray
    factors: np.ndarray


BLOCK = 2 * LANES  # images


@functools.lru_cache(maxsize=8)
def memory(caller, network, workers=()) -> Memory:
    """Memory for steps of a network, the same at every call: each calling thread has its own.

    Memory fresh from the operating system would cost a page fault for every 4 KiB, in every step.
    """
    plan = programme(network)
    flat = lanes.zeros(*workers, 2, plan.size)
    for first, numbers in plan.constants:
        flat[..., first : first + numbers.size] = numbers
    sums, numbers = lanes.zeros(*workers, plan.n_sums), np.zeros((*workers, 2, 4 * LANES), np.int64)
    return Memory(flat, sums, numbers, np.zeros((*workers, LANES)))


@numba.njit
def of_worker(memory, worker):
    """The memory of one of several workers."""
    flat, sums, numbers, factors = memory
    return Memory(flat[worker], sums[worker], numbers[worker], factors[worker])


def loss_and_gradients(params, images, labels, grads, chosen=None):
    """Loss of the images (M,C,H,W) number `chosen`, or all, with labels (M), and its gradients.

    Both are summed over the images. `params` and `grads` are Parameters.
    """
    # One kind of array and of number, here and below: for another, Numba would compile all again.
    chosen = np.arange(len(images)) if chosen is None else np.ascontiguousarray(chosen)
    plan, own = plan_and_memory(params)
    few = True if plan.by_pixels and chosen.size < FEW else None
    batch = rows_of(images), labels, chosen, own, few
    return gradients(plan.layers, plan.tables, params.flat, grads.flat, *batch)


def sgd_steps(params, grads, images, labels, order, batch, rate, workers=None):
    """Train on the images (M,C,H,W) number `order`, a batch at a time; returns the summed loss.

    Many steps, with no Python between them. Of several `workers`, this one takes its share of each
    batch, and the loss is that of its shares; `grads` must then lie where they add up. The last
    step is left in `grads`. Raises ValueError for a batch of no images.
    """
    at_least("batch", batch, 1)
    workers, (plan, own) = workers or ALONE, plan_and_memory(params)
    last = order.size % batch or min(batch, order.size)
    few = True if plan.by_pixels and last // workers.size < FEW else None
    return sgd_loop(
        plan.layers, plan.tables, params.flat, grads.flat, rows_of(images), labels, order,
        batch, float(rate), own, few, workers,
    )  # fmt: skip


def plan_and_memory(params):
    """The programme of the parameters' network, and the calling thread's memory for it."""
    return programme(params.network), memory(threading.get_ident(), params.network)


def workspace(params) -> np.ndarray:
    """The calling thread's memory for steps of the parameters' network, float32 (2,M)."""
    return plan_and_memory(params)[1].flat


def rows_of(images: np.ndarray) -> np.ndarray:
    """Images (M,C,H,W) as rows (M,D) that compiled code may read: one kind of array for all."""
    images = images if images.flags.carray else images.copy()
    return images.reshape(len(images), -1)


@numba.njit(nogil=True, error_model="numpy")
def sgd_loop(layers, tables, params, grads, images, labels, order, batch, rate, own, few, workers):
    """Steps of stochastic gradient descent, as one of `workers`; the loss of this one's shares."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        mine = share(chosen, workers, few)
        loss += gradients(layers, tables, params, grads, images, labels, mine, own, few)
        subtract(params, allreduce(grads, workers), np.float32(rate / chosen.size))
    return loss


@numba.njit
def subtract(params, grads, rate):
    """Subtract rate × gradient in place: params (M), grads (M), which become the step."""
    for i in range(grads.size):  # two loops become vector instructions here, and one does not
        grads[i] *= rate
    for i in range(grads.size):
        params[i] -= grads[i]


@numba.njit(nogil=True, error_model="numpy")
def gradients(layers, tables, params, grads, images, labels, chosen, own, few):
    """Loss of the images number `chosen`, and their gradients, both summed over the images.

    `few` is None where there are never fewer than FEW images: Numba then compiles less.
    """
    for i in range(grads.size):
        grads[i] = np.float32(0)
    if few is not None and chosen.size < FEW:
        return few_images(layers, params, grads, images, labels, chosen, own.flat[0])
    return many_images(layers, tables, params, grads, images, labels, chosen, own)


@numba.njit(error_model="numpy")
def many_images(layers, tables, params, grads, images, labels, chosen, own):
    """Loss of the images number `chosen`; their gradients are added to `grads`."""
    loss = 0.0
    own.sums[:] = np.float32(0)
    for first in range(0, chosen.size, BLOCK):
        block = chosen[first : first + BLOCK]
        forward_block(layers, tables, params, images, labels, block, own)
        loss += backward_block(layers, tables, params, grads, len(block), own)
    add_lanes(layers, own.sums, grads)
    return loss


@numba.njit(error_model="numpy")
def add_lanes(layers, sums, grads):
    """Add to the gradients what the layers have added up lane by lane."""
    for i in range(len(layers)):
        r = layers[i]
        lanes.add_lanes(sums[r.sums :], grads[r.into : r.into + r.n_sums])


@numba.njit(error_model="numpy")
def forward_block(layers, tables, params, images, labels, block, own):
    """Lay the images number `block` side by side, at most BLOCK, and take them through all layers.

    Lanes that are left over repeat the first image; their gradients are too small to count.
    """
    n_pixels, n_vectors = images.shape[1], vectors(len(block))
    for v in range(n_vectors):
        numbers = own.numbers[v]
        for j in range(LANES):
            image = block[v * LANES + j if v * LANES + j < len(block) else 0]
            numbers[j], numbers[2 * LANES + j] = image * n_pixels, labels[image]
        lanes.to_lanes(images.reshape(images.size), numbers, n_pixels, own.flat[v])
    for i in range(len(layers)):
        forward(layers[i], params, own.flat, tables, n_vectors)


@numba.njit
def vectors(n_images):
    """How many vectors so many images fill."""
    return (n_images + LANES - 1) // LANES


@numba.njit(error_model="numpy")
def backward_block(layers, tables, params, grads, n_images, own):
    """Loss of the block of n_images that went forward.

    Its gradients are added to `grads`, or lane by lane to `own.sums`, see `add_lanes`.
    """
    last, n_vectors, loss = layers[len(layers) - 1], vectors(n_images), 0.0
    for v in range(n_vectors):
        flat, labels, left = own.flat[v], own.numbers[v, 2 * LANES :], n_images - v * LANES
        y, dz = flat[last.y :], flat[last.dy :]
        loss += lanes.cross_entropy(y, last.F, labels, min(left, LANES), own.factors, dz)
    for i in range(len(layers) - 1, -1, -1):
        if layers[i].dy >= 0:
            backward(layers[i], params, grads, own.flat, own.sums, tables, n_vectors)
    return loss


@numba.njit(error_model="numpy")
def forward(r, params, both, tables, n_vectors):
    """One layer of a block of images, one vector or both, forward; `both` is `Memory.flat`."""
    for v in range(n_vectors):
        flat, n = both[v], r.P * r.Q
        x, y, held = flat[r.x :], flat[r.y :], flat if r.fixed else params
        w, b = held[r.w :], held[r.b :]
        for c in range(r.times):
            xc, yc = x[c * r.x_step :], y[c * r.y_step :]
            if r.kind == MAX_POOL:
                lanes.max_pool(xc, yc, n, r.K**2, tables, r.maps, r.pixels, r.windows, r.taps)
            elif r.kind == MOVE:
                lanes.move(x, y, r.C * r.H * r.W, r.summed, tables, r.windows, r.taps)
            elif v == 0 or r.kind != DENSE:  # whose records are of both vectors
                wc, bc = w[c * r.w_step :], b[c * r.b_step :]
                lanes.multiply(wc, bc, xc, yc, tables, r.forward)
        if r.activation == SIGMOID or (r.activation == RELU and r.kind not in (CONV, DENSE)):
            lanes.activate(y, r.F * n, r.activation)


@numba.njit(error_model="numpy")
def backward(r, params, grads, both, sums, tables, n_vectors):
    """One layer of a block of images, one vector or both, backward."""
    for v in range(n_vectors):
        backward_vector(r, params, both[v], sums, tables)
    if r.kind == DENSE:
        dense_gradient(r, both, grads[r.w :], tables, n_vectors)
        if r.dx >= 0:
            w, flat = params[r.w :], both[0]
            lanes.multiply(w, w, flat[r.dz :], flat[r.dx :], tables, r.back)


@numba.njit(error_model="numpy")
def backward_vector(r, params, flat, sums, tables):
    """One layer of a vector of images, backward, but for the products of a fully connected one."""
    x, y, dy, dz = flat[r.x :], flat[r.y :], flat[r.dy :], flat[r.y if r.ready else r.dz :]
    held, n = flat if r.fixed else params, r.P * r.Q
    w, learns = held[r.w :], r.w >= 0 and not r.fixed
    activation = LINEAR if r.last else r.activation
    if not r.ready and (learns or activation != LINEAR or r.dz != r.dy):
        db = sums[r.db :] if learns else sums[:0]
        lanes.deactivate(y, dy, dz, db, activation, r.F, n, r.maps, r.pixels, tables)
    if r.kind == DENSE:
        return
    if learns:
        for c in range(r.times):
            dzc, xc = dz[c * r.y_step :], x[c * r.x_step :]
            dw = sums[r.sums + c * r.w_step * LANES :]
            lanes.add_products(dzc, xc, dw, tables, r.weights)
    if r.dx < 0:
        return
    dx, size = flat[r.dx if r.over < 0 else r.over :], r.C * r.H * r.W
    if r.kind == CONV:
        lanes.multiply(w, w, dz, dx, tables, r.back)
    elif r.kind == MOVE:
        lanes.move_back(dz, dx, size, r.added, tables, r.windows, r.taps)
    else:
        if not (r.added or r.exact):
            lanes.clear(dx, size)
        pool_gradient(r, x, y, w, dz, dx, sums, tables)


@numba.njit(error_model="numpy")
def dense_gradient(r, both, dw, tables, n_vectors):
    """The gradient of a fully connected layer's weights, which has images as rows."""
    dz, rows = both[0, r.dz :], both[0, r.rows :]
    if not r.weights:
        for v in range(n_vectors):
            lanes.add_dense_products(both[v, r.x :], both[v, r.dz :], dw, r.C, r.F)
    for record in (r.weights, r.tail) if n_vectors == 2 else (r.one_weights, r.one_tail):
        if record:
            for v in range(n_vectors):
                lanes.to_rows(both[v, r.x :], both[v, r.rows :], tables, record)
            lanes.multiply(dz, dz, rows, dw, tables, record)


@numba.njit(error_model="numpy")
def pool_gradient(r, x, y, w, dz, dx, sums, tables):
    """The gradient of a pooling's input, and the bias of the convolution below, if that is done."""
    added, n, n_taps = r.added or r.K > r.S, r.P * r.Q, r.K**2
    for c in range(r.times):
        xc, dxc, dzc = x[c * r.x_step :], dx[c * r.x_step :], dz[c * r.y_step :]
        db = sums[r.bias_over + c * LANES :] if r.bias_over >= 0 else sums[:0]
        if r.kind == MAX_POOL:
            yc = y[c * r.y_step :]
            lanes.max_pool_backward(
                xc, yc, dzc, dxc, db, added, r.through, n, n_taps, tables, r.windows, r.taps
            )
        else:
            wc = w[c * r.w_step :]
            lanes.pool_backward_input(
                xc, wc, dzc, dxc, db, added, r.through, n, n_taps, tables, r.windows, r.taps
            )
