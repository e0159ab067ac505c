"""Training in batches: 16 images side by side, so that work on a number becomes work on vectors.

Arrays here have 16 images as their innermost index: a pixel is a vector. The kernels say which
sums wait in registers, PIXELS or three times TAPS, as many as it takes to keep the arithmetic units
busy, and as fit (see `compiled.registers`). A block's activations stay in the cache from
the forward to the backward pass.
"""

import math

import numba
import numpy as np

from cnnlab.kernels.compiled.vector_registers import (
    LANES,
    PIXELS,
    TAPS,
    block,
    larger,
    load,
    shifted,
    smaller,
    store,
    totals,
)


def zeros(*shape):
    """Float32 zeros that begin at the start of a cache line, so that no vector straddles two."""
    size = math.prod(shape)
    buffer = np.zeros(size + LANES, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return buffer[skip : skip + size].reshape(shape)


@numba.njit
def interleave(rows, chosen, mixed):
    """Deal out rows like cards, four at a time: rows number chosen (4R), of M → mixed (R,4M).

    Done twice, it lays 16 images side by side. Its loop is the shuffling that compilers know best.
    """
    R = len(mixed)
    for r in range(R):
        r0, r1 = rows[chosen[r]], rows[chosen[r + R]]
        r2, r3, out = rows[chosen[r + 2 * R]], rows[chosen[r + 3 * R]], mixed[r]
        for m in range(r0.size):
            out[4 * m] = r0[m]
            out[4 * m + 1] = r1[m]
            out[4 * m + 2] = r2[m]
            out[4 * m + 3] = r3[m]


@numba.njit
def to_lanes(images, x):
    """Lay images (N,M), N <= 16, side by side: x (M,16); lanes without an image become zero."""
    N, M = images.shape
    if N < x.shape[1]:
        x[:] = np.float32(0)
    for n in range(0, N - 3, 4):  # four by four: the compiler's gathers would be slower
        i0, i1, i2, i3 = images[n], images[n + 1], images[n + 2], images[n + 3]
        for m in range(M):
            x[m, n] = i0[m]
            x[m, n + 1] = i1[m]
            x[m, n + 2] = i2[m]
            x[m, n + 3] = i3[m]
    for n in range(N - N % 4, N):
        for m in range(M):
            x[m, n] = images[n, m]


@numba.njit
def from_lanes(x, images):
    """Take images (N,M), N <= 16, out of their lanes x (M,16)."""
    N, M = images.shape
    for n in range(0, N - 3, 4):
        i0, i1, i2, i3 = images[n], images[n + 1], images[n + 2], images[n + 3]
        for m in range(M):
            i0[m] = x[m, n]
            i1[m] = x[m, n + 1]
            i2[m] = x[m, n + 2]
            i3[m] = x[m, n + 3]
    for n in range(N - N % 4, N):
        for m in range(M):
            images[n, m] = x[m, n]


@numba.njit(error_model="numpy")
def logistic(z):
    """1 / (1 + exp(-z)) for the numbers of a Block, as `activation.sigmoid` does it."""
    one, log2e, ln2 = np.float32(1), np.float32(1.44269504), np.float32(0.69314718)
    shift = np.float32(12583039)
    t = smaller(np.float32(87), larger(np.float32(-87), np.float32(0) - z))  # NaN stays NaN
    rounded = t * log2e + shift
    r = t - (rounded - shift) * ln2
    e = np.float32(1 / 120) + r * np.float32(1 / 720)
    e = np.float32(1 / 6) + r * (np.float32(1 / 24) + r * e)
    e = one + r * (one + r * (np.float32(1 / 2) + r * e))
    return one / (one + e * shifted(rounded, 23))


@numba.njit(error_model="numpy")
def sigmoid_lanes(z, y):
    """y = 1 / (1 + exp(-z)) for vectors z, y (M,16)."""
    M, eight, one = len(z), block(np.float32(0), 8), block(np.float32(0), 1)
    for m in range(0, M - 7, 8):
        store(y, m, logistic(load(z, m, eight)))
    for m in range(M - M % 8, M):
        store(y, m, logistic(load(z, m, one)))


@numba.njit(error_model="numpy")
def conv_pixels(x, w, p, q, z):
    """Add to a Block z what x (C,H,W,16) and w (C,K,K) give to pixels q, q + 1, … of row p."""
    C, K, _ = w.shape
    for c in range(C):
        for k in range(K):
            for l in range(K):
                z += w[c, k, l] * load(x[c, p + k], q + l, z)
    return z


@numba.njit(error_model="numpy")
def conv_map_forward(x, w, b, z):
    """One map of the convolution: x (C,H,W,16), w (C,K,K), b → z (P,Q,16)."""
    P, Q, _ = z.shape
    for p in range(P):
        for q in range(0, Q - PIXELS + 1, PIXELS):  # as many as registers hold ...
            store(z[p], q, conv_pixels(x, w, p, q, block(b, PIXELS)))
        for q in range(Q - Q % PIXELS, Q):  # ... and those left over, one by one
            store(z[p], q, conv_pixels(x, w, p, q, block(b, 1)))


@numba.njit(error_model="numpy")
def pool_map_forward(y, w, b, z):
    """One map of the pooling: y (P,Q,16), w (S,S), b → z (P//S,Q//S,16)."""
    S = len(w)
    for p in range(z.shape[0]):
        for q in range(z.shape[1]):
            s = block(b, 1)
            for k in range(S):
                for l in range(S):
                    s += w[k, l] * load(y[p * S + k], q * S + l, s)
            store(z[p], q, s)


@numba.njit(error_model="numpy")
def pool_map_backward(y, w, dz, dw, dx):
    """One map of the pooling, backwards and through the sigmoid before it.

    y (P,Q,16), w (S,S), dz (P//S,Q//S,16) → adds to dw (S,S,16), a sum for each lane; writes the
    gradient with respect to the preactivation to dx (P,Q,16), but for pixels beyond the last
    window. Returns the sums of dz and dx, which are the gradients with respect to the two biases.
    """
    S, all_dz, all_dx = len(w), block(np.float32(0), 1), block(np.float32(0), 1)
    for p in range(dz.shape[0]):
        for q in range(dz.shape[1]):
            all_dz += load(dz[p], q, all_dz)
        for k in range(S):
            for l in range(S):
                s = load(dw[k], l, all_dz)
                for q in range(dz.shape[1]):
                    d, a = load(dz[p], q, s), load(y[p * S + k], q * S + l, s)
                    s += d * a
                    out = w[k, l] * d * (a * (np.float32(1) - a))
                    all_dx += out
                    store(dx[p * S + k], q * S + l, out)
                store(dw[k], l, s)
    return totals(all_dz)[0], totals(all_dx)[0]


@numba.njit(error_model="numpy")
def tap_products(x, dz, k, l, zero):
    """Sums over all pixels of dz (3,P,Q,16) times x (H,W,16), k rows down and l, l + 1, … aside.

    A Block for each of the three maps, of as many vectors as `zero` has.
    """
    s = t = u = zero
    one = block(np.float32(0), 1)
    for p in range(dz.shape[1]):
        for q in range(dz.shape[2]):
            taps = load(x[p + k], q + l, zero)
            s += load(dz[0, p], q, one) * taps
            t += load(dz[1, p], q, one) * taps
            u += load(dz[2, p], q, one) * taps
    return s, t, u


@numba.njit(error_model="numpy")
def conv_maps_backward(x, dz, dw):
    """Add what up to three maps give to the convolution's weights.

    x (C,H,W,16), dz (3,P,Q,16) → adds to dw (F,C,K,K), F <= 3; maps beyond F do not count.
    """
    F, C, K, _ = dw.shape
    for c in range(C):
        for k in range(K):
            for l in range(0, K - TAPS + 1, TAPS):  # as many as registers hold ...
                sums = tap_products(x[c], dz, k, l, block(np.float32(0), TAPS))
                for f, s in enumerate(sums):
                    for j, total in enumerate(totals(s)):
                        if f < F:
                            dw[f, c, k, l + j] += total
            for l in range(K - K % TAPS, K):  # ... and those left over, one by one
                sums = tap_products(x[c], dz, k, l, block(np.float32(0), 1))
                for f, s in enumerate(sums):
                    if f < F:
                        dw[f, c, k, l] += totals(s)[0]


@numba.njit(error_model="numpy")
def dense_lanes_forward(y, w, b, z):
    """Fully connected layer: y (D,16), w (O,D), b (O) → z (O,16)."""
    O, D = w.shape
    for o in range(O):
        store(z, o, block(b[o], 1))
    for i in range(D):
        a = load(y, i, block(np.float32(0), 1))
        for o in range(O):
            store(z, o, load(z, o, a) + w[o, i] * a)


@numba.njit(error_model="numpy")
def dense_lanes_backward(dz, w, y, dx):
    """The fully connected layer, backwards and through the sigmoid before it.

    dz (O,16), w (O,D), y (D,16) → dx (D,16), the gradient with respect to the preactivation.
    """
    O, D = w.shape
    for i in range(D):
        s = block(np.float32(0), 1)
        for o in range(O):
            s += w[o, i] * load(dz, o, s)
        a = load(y, i, s)
        store(dx, i, s * (a * (np.float32(1) - a)))


@numba.njit(error_model="numpy")
def add_lanes(x, sums):
    """Sums over the lanes: x (M,16) → sums (M)."""
    for m in range(len(sums)):
        sums[m] = totals(load(x, m, block(np.float32(0), 1)))[0]
