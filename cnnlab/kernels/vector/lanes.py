"""Training in batches: images side by side, so that work on a number becomes work on vectors.

Arrays here have B images as their innermost index, as many as a register has lanes: a pixel is a
vector. The kernels say which sums wait in registers, PIXELS or MAPS × TAPS, as many as it takes to
keep the arithmetic units busy, and as fit (see `kernels.registers`). A block's activations stay in
the cache from the forward to the backward pass.
"""

import math

import numba
import numpy as np

from cnnlab.kernels.registers import (
    MAPS,
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
    buffer = np.zeros(size + 15, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return buffer[skip : skip + size].reshape(shape)


@numba.njit
def interleave(rows, chosen, mixed):
    """Deal out rows like cards, four at a time: rows number chosen (4R), of M → mixed (R,4M).

    Done twice, it lays 16 images side by side faster than `to_lanes`: its loop is the shuffling
    that compilers know best.
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
def to_lanes(rows, chosen, x):
    """Lay rows number `chosen` (N), N <= B, side by side: x (M,B); the other lanes become zero."""
    N, M = chosen.size, len(x)
    if N < x.shape[1]:
        x[:] = np.float32(0)
    for n in range(0, N - 3, 4):  # four by four: the compiler's gathers would be slower
        r0, r1 = rows[chosen[n]], rows[chosen[n + 1]]
        r2, r3 = rows[chosen[n + 2]], rows[chosen[n + 3]]
        for m in range(M):
            x[m, n] = r0[m]
            x[m, n + 1] = r1[m]
            x[m, n + 2] = r2[m]
            x[m, n + 3] = r3[m]
    for n in range(N - N % 4, N):
        for m in range(M):
            x[m, n] = rows[chosen[n], m]


@numba.njit
def from_lanes(x, images):
    """Take images (N,M), N <= B, out of their lanes x (M,B)."""
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
    """1 / (1 + exp(-z)) for the numbers of a Block, with exp as in `activation.sigmoid`.

    exp(-r) is not cut from its series, but the polynomial 1 - r + c2 r^2 - … of degree 5 whose
    largest error for |r| <= ln 2 / 2 is least, 1.1e-7; the series takes degree 6 for that.
    """
    one, log2e, ln2 = np.float32(1), np.float32(1.44269504), np.float32(0.69314718)
    shift = np.float32(12583039)
    z = smaller(np.float32(87), larger(np.float32(-87), z))  # NaN stays NaN
    rounded = shift - z * log2e
    r = z + (rounded - shift) * ln2
    e = np.float32(0.04189016) - r * np.float32(0.00831251)
    e = np.float32(0.49999232) - r * (np.float32(0.16667115) - r * e)
    e = one - r * (one - r * e)
    return one / (one + e * shifted(rounded, 23))


@numba.njit(error_model="numpy")
def sigmoid_lanes(y):
    """The sigmoid in place: vectors y (M,B). Four at a time leave registers for its constants."""
    M, four, one = len(y), block(np.float32(0), 4), block(np.float32(0), 1)
    for m in range(0, M - 3, 4):
        store(y, m, logistic(load(y, m, four)))
    for m in range(M - M % 4, M):
        store(y, m, logistic(load(y, m, one)))


@numba.njit(error_model="numpy")
def conv_pixels(x, w, p, q, z):
    """Add to a Block z what x (C,H,W,B) and w (C,K,K) give to pixels q, q + 1, … of row p."""
    C, K, _ = w.shape
    for c in range(C):
        for k in range(K):
            for l in range(K):
                z += w[c, k, l] * load(x[c, p + k], q + l, z)
    return z


@numba.njit(error_model="numpy")
def conv_map_forward(x, w, b, z):
    """One map of the convolution: x (C,H,W,B), w (C,K,K), b → z (P,Q,B)."""
    P, Q, _ = z.shape
    for p in range(P):
        for q in range(0, Q - PIXELS + 1, PIXELS):  # as many as registers hold ...
            store(z[p], q, conv_pixels(x, w, p, q, block(b, PIXELS)))
        for q in range(Q - Q % PIXELS, Q):  # ... and those left over, one by one
            store(z[p], q, conv_pixels(x, w, p, q, block(b, 1)))


@numba.njit(error_model="numpy")
def pool_map_forward(y, w, b, z):
    """One map of the pooling: y (P,Q,B), w (S,S), b → z (P//S,Q//S,B)."""
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

    y (P,Q,B), w (S,S), dz (P//S,Q//S,B) → adds to dw (S,S,B), a sum for each lane; writes the
    gradient with respect to the preactivation to dx (P,Q,B), but for pixels beyond the last
    window. Returns the sums of dz and dx, which are the gradients with respect to the two biases.
    """
    S, all_dz, all_dx = len(w), block(np.float32(0), 1), block(np.float32(0), 1)
    for p in range(dz.shape[0]):
        for q in range(dz.shape[1]):
            all_dz += load(dz[p], q, all_dz)
        for k in range(S):
            for l in range(S):
                s, t = load(dw[k], l, all_dz), block(np.float32(0), 1)
                for q in range(dz.shape[1]):
                    d, a = load(dz[p], q, s), load(y[p * S + k], q * S + l, s)
                    s += d * a
                    out = w[k, l] * d * (a * (np.float32(1) - a))
                    t += out
                    store(dx[p * S + k], q * S + l, out)
                store(dw[k], l, s)
                all_dx += t
    return totals(all_dz)[0], totals(all_dx)[0]


@numba.njit(error_model="numpy")
def tap_products(x, dz, zero):
    """Sums over all pixels of dz (MAPS,P,Q,B) times x, and times its neighbours to the right.

    A Block for each of two or three maps, of as many vectors as `zero` has.
    """
    r = s = t = zero
    one = block(np.float32(0), 1)
    for p in range(dz.shape[1]):
        for q in range(dz.shape[2]):
            taps = load(x[p], q, zero)
            r += load(dz[0, p], q, one) * taps
            s += load(dz[1, p], q, one) * taps
            if MAPS == 3:
                t += load(dz[2, p], q, one) * taps
    return r, s, t


@numba.njit(error_model="numpy")
def conv_maps_backward(x, dz, dw):
    """Add what up to MAPS maps give to the convolution's weights.

    x (C,H,W,B), dz (MAPS,P,Q,B) → adds to dw (F,C,K,K), F <= MAPS; maps beyond F do not count.
    """
    F, C, K, _ = dw.shape
    for c in range(C):
        for k in range(K):
            for l in range(0, K - TAPS + 1, TAPS):  # as many as registers hold ...
                sums = tap_products(x[c, k:, l:], dz, block(np.float32(0), TAPS))
                for f in range(F):
                    for j, total in enumerate(totals(sums[f])):
                        dw[f, c, k, l + j] += total
            for l in range(K - K % TAPS, K):  # ... and those left over, one by one
                sums = tap_products(x[c, k:, l:], dz, block(np.float32(0), 1))
                for f in range(F):
                    dw[f, c, k, l] += totals(sums[f])[0]


@numba.njit(error_model="numpy")
def dense_lanes_forward(y, w, b, z):
    """Fully connected layer: y (D,B), w (O,D), b (O) → z (O,B)."""
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

    dz (O,B), w (O,D), y (D,B) → dx (D,B), the gradient with respect to the preactivation.
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
    """Sums over the lanes: x (M,B) → sums (M)."""
    for m in range(len(sums)):
        sums[m] = totals(load(x, m, block(np.float32(0), 1)))[0]


@numba.njit(fastmath=True, error_model="numpy")
def add_dense_gradients(y, dz, dw, db):
    """Add to the gradients of the fully connected layer: y (N,D), dz (N,O) → dw (O,D), db (O)."""
    N = len(y)
    for o in range(db.size):
        for n in range(0, N - 3, 4):  # four images a pass ...
            d0, d1, d2, d3 = dz[n, o], dz[n + 1, o], dz[n + 2, o], dz[n + 3, o]
            db[o] += d0 + d1 + d2 + d3
            for i in range(dw.shape[1]):
                near = d0 * y[n, i] + d1 * y[n + 1, i]
                dw[o, i] += near + d2 * y[n + 2, i] + d3 * y[n + 3, i]
        for n in range(N - N % 4, N):  # ... and those left over, one by one
            db[o] += dz[n, o]
            for i in range(dw.shape[1]):
                dw[o, i] += dz[n, o] * y[n, i]
