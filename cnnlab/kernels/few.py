"""Steps of a few images, fewer than are worth laying side by side: by the contract's functions.

Compiled code walks over the rows of a programme, as `steps` does; the arrays are those of the
contract, (N,C,H,W), in the same memory.
"""

import numba

from cnnlab.kernels import lanes, pixels
from cnnlab.kernels.lanes import LINEAR
from cnnlab.kernels.programme import CONV, DENSE, MAX_POOL, POOL
from cnnlab.kernels.registers import LANES


@numba.njit(error_model="numpy")
def few_images(layers, params, grads, images, labels, chosen, flat):
    """Loss and gradients of the images number `chosen` (N), summed; `grads` hold zeros before."""
    N = chosen.size
    for n in range(N):
        for m in range(images.shape[1]):
            flat[n * images.shape[1] + m] = images[chosen[n], m]
    for i in range(len(layers)):
        few_forward(layers[i], N, params, flat)
    last, loss = layers[len(layers) - 1], 0.0
    y, dy = part(flat, last.y, N, last.F), part(flat, last.dy, N, last.F)
    loss = pixels.cross_entropy(y, labels[chosen], dy)
    for i in range(len(layers) - 1, -1, -1):
        if layers[i].dy >= 0:
            few_backward(layers[i], N, params, grads, flat)
    return loss


@numba.njit(error_model="numpy")
def part(flat, first, n, m):
    """An array (n,m) in the memory."""
    return flat[first : first + n * m].reshape(n, m)


@numba.njit(error_model="numpy")
def maps(flat, first, a, b, c, d):
    """An array (a,b,c,d) in the memory."""
    return flat[first : first + a * b * c * d].reshape(a, b, c, d)


@numba.njit(error_model="numpy")
def few_forward(r, N, params, flat):
    """One layer forward."""
    held = flat if r.fixed else params
    b, n = held[r.b : r.b + r.F], N * r.F * r.P * r.Q
    x, y = maps(flat, r.x, N, r.C, r.H, r.W), maps(flat, r.y, N, r.F, r.P, r.Q)
    if r.kind == CONV:
        pixels.conv_forward(x, maps(held, r.w, r.F, r.C, r.K, r.K), b, y, r.S)
    elif r.kind == POOL:
        pixels.pool_forward(x, maps(held, r.w, 1, r.C, r.K, r.K)[0], b, y, r.S)
    elif r.kind == MAX_POOL:
        pixels.max_pool_forward(x, y, r.S)
    elif r.kind == DENSE:
        w = part(held, r.w, r.F, r.C)
        pixels.dense_forward(part(flat, r.x, N, r.C), w, b, part(flat, r.y, N, r.F))
    else:
        for m in range(n):
            flat[r.y + m] = flat[r.x + m]
    lanes.activate(flat[r.y :], (n + LANES - 1) // LANES, r.activation)


@numba.njit(error_model="numpy")
def few_backward(r, N, params, grads, flat):
    """One layer backward: its gradients, and dx."""
    n, k = N * r.F * r.P * r.Q, r.K
    held, learns = flat if r.fixed else params, r.w >= 0 and not r.fixed
    if r.activation != LINEAR and not r.last:
        lanes.deactivate_in_place(flat[r.y :], flat[r.dy :], (n + LANES - 1) // LANES, r.activation)
    x, dx = maps(flat, r.x, N, r.C, r.H, r.W), maps(flat, max(r.dx, 0), N, r.C, r.H, r.W)
    dz, db = maps(flat, r.dy, N, r.F, r.P, r.Q), grads[r.b : r.b + r.F]
    if r.kind == CONV:
        pixels.conv_backward_weights(x, dz, maps(grads, r.w, r.F, r.C, k, k), r.S)
        pixels.conv_backward_bias(dz, db)
        if r.dx >= 0:
            pixels.conv_backward_input(dz, maps(params, r.w, r.F, r.C, k, k), dx, r.S)
    elif r.kind == POOL:
        if learns:
            pixels.pool_backward_weights(x, dz, maps(grads, r.w, 1, r.C, k, k)[0], r.S)
            pixels.pool_backward_bias(dz, db)
        if r.dx >= 0:
            pixels.pool_backward_input(dz, maps(held, r.w, 1, r.C, k, k)[0], dx, r.S)
    elif r.kind == MAX_POOL:
        pixels.max_pool_backward(x, dz, dx, r.S)
    elif r.kind == DENSE:
        rows, dz_rows = part(flat, r.x, N, r.C), part(flat, r.dy, N, r.F)
        pixels.dense_backward_weights(rows, dz_rows, part(grads, r.w, r.F, r.C))
        pixels.dense_backward_bias(dz_rows, db)
        if r.dx >= 0:
            w = part(params, r.w, r.F, r.C)
            pixels.dense_backward_input(dz_rows, w, part(flat, max(r.dx, 0), N, r.C))
    else:
        for m in range(n):
            flat[r.dx + m] = flat[r.dy + m]
