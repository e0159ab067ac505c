"""Parallel kernels that lessons set side by side: collapsed loops, reductions, stationarity."""

import numba
import numpy as np

# --- lesson 10 ------------------------------------------------------------------------------------


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_maps(x, w, b, z):
    """Parallel over the maps of each image: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for f in numba.prange(F):
            for p in range(P):
                out = z[n, f, p]
                out[:] = b[f]
                for c in range(C):
                    for k in range(K):
                        row = x[n, c, p + k]
                        for l in range(K):
                            tap, w0 = row[l:], w[f, c, k, l]
                            for q in range(Q):
                                out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_rows(x, w, b, z):
    """Maps and rows of each image in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for i in numba.prange(F * P):
            f, p = i // P, i % P
            out = z[n, f, p]
            out[:] = b[f]
            for c in range(C):
                for k in range(K):
                    row = x[n, c, p + k]
                    for l in range(K):
                        tap, w0 = row[l:], w[f, c, k, l]
                        for q in range(Q):
                            out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_collapsed(x, w, b, z):
    """Images, maps and rows in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for i in numba.prange(N * F * P):
        n, f, p = i // (F * P), i // P % F, i % P
        out = z[n, f, p]
        out[:] = b[f]
        for c in range(C):
            for k in range(K):
                row = x[n, c, p + k]
                for l in range(K):
                    tap, w0 = row[l:], w[f, c, k, l]
                    for q in range(Q):
                        out[q] += w0 * tap[q]


@numba.njit(parallel=True)
def triangle_blocks(rows, sums):
    """Unequal tasks in blocks, one a thread: sums[i] adds up rows[0] … rows[i], of rows (M,L)."""
    for i in numba.prange(sums.size):
        total = np.float32(0)
        for j in range(i + 1):
            for l in range(rows.shape[1]):
                total += rows[j, l]
        sums[i] = total


@numba.njit(parallel=True)
def triangle_cyclic(rows, sums, n_threads):
    """The same tasks in turn: thread t takes t, t + n_threads, t + 2 n_threads, …"""
    for t in numba.prange(n_threads):
        for i in range(t, sums.size, n_threads):
            total = np.float32(0)
            for j in range(i + 1):
                for l in range(rows.shape[1]):
                    total += rows[j, l]
            sums[i] = total


@numba.njit(nogil=True)
def triangle_task(rows, sums, i):
    """One of these tasks, for a queue; it releases Python's lock, so several run at a time."""
    total = np.float32(0)
    for j in range(i + 1):
        for l in range(rows.shape[1]):
            total += rows[j, l]
    sums[i] = total


# --- lesson 11 ------------------------------------------------------------------------------------


@numba.njit(parallel=True)
def bias_race(dz, db):
    """WRONG on purpose: threads load, add and store the same element, and updates get lost."""
    F, size, flat = db.size, dz.shape[2] * dz.shape[3], dz.reshape(-1)
    for f in range(F):
        db[f] = 0
    for i in numba.prange(flat.size):
        db[i // size % F] += flat[i]


@numba.njit(parallel=True, fastmath=True)
def bias_by_filter(dz, db):
    """One task per filter, so no two threads share a sum; only as many tasks as filters."""
    for f in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            image = dz[n, f].reshape(-1)
            for m in range(image.size):
                total += image[m]
        db[f] = total


@numba.njit(parallel=True, fastmath=True)
def bias_private(dz, db, n_blocks):
    """Privatised: each block of images has its own sums, which are then added in order."""
    N, F = dz.shape[:2]
    private = np.zeros((n_blocks, F), dz.dtype)
    for t in numba.prange(n_blocks):
        for n in range(N * t // n_blocks, N * (t + 1) // n_blocks):
            for f in range(F):
                image, total = dz[n, f].reshape(-1), np.float32(0)
                for m in range(image.size):
                    total += image[m]
                private[t, f] += total
    for f in range(F):
        total = np.float32(0)
        for t in range(n_blocks):
            total += private[t, f]
        db[f] = total


@numba.njit(parallel=True, fastmath=True)
def bias_tree(dz, db):
    """A tree: the sum of each image, then pairs, pairs of pairs, … in ceil(log2(N)) rounds."""
    N, F = dz.shape[:2]
    sums = np.empty((N, F), dz.dtype)
    for i in numba.prange(N * F):
        image, total = dz[i // F, i % F].reshape(-1), np.float32(0)
        for m in range(image.size):
            total += image[m]
        sums[i // F, i % F] = total
    step = 1
    while step < N:
        for i in numba.prange((N - step + 2 * step - 1) // (2 * step)):
            for f in range(F):
                sums[2 * step * i, f] += sums[2 * step * i + step, f]
        step *= 2
    for f in range(F):
        db[f] = sums[0, f]


@numba.njit(parallel=True)
def count_apart(places, counts, rounds):
    """Thread t adds 1 to counts[places[t, …]] `rounds` times: counts int64, places (T,8) int64.

    The index is loaded every time, so that the compiler cannot keep the count in a register.
    """
    for t in numba.prange(len(places)):
        for i in range(rounds):
            counts[places[t, i & 7]] += 1


@numba.njit(parallel=True)
def sum_recognised(values):
    """`+=` on a scalar: Numba recognises a reduction and gives each thread its own sum."""
    total = 0.0
    for i in numba.prange(values.size):
        total += values[i]
    return total


@numba.njit(parallel=True)
def sum_not_recognised(values, classes, sums):
    """WRONG on purpose: `+=` on an array element is not a reduction to Numba, but a race."""
    for j in range(sums.size):
        sums[j] = 0
    for i in numba.prange(values.size):
        sums[classes[i]] += values[i]


# --- lesson 12: the same multiply-adds in three orders, named after what stays in a register ------


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_output_stationary(x, w, b, z):
    """Gather: an output stays; the inputs and weights that it needs stream past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    total = b[f]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                total += w[f, c, k, l] * x[n, c, p + k, q + l]
                    z[n, f, p, q] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_input_stationary(x, w, b, z):
    """Scatter: an input stays; its products go to all outputs that need it."""
    N, F, P, Q = z.shape
    _, C, H, W = x.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    pixel = x[n, c, i, j]
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                z[n, f, p, q] += w[f, c, i - p, j - q] * pixel


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_weight_stationary(x, w, b, z):
    """A weight stays; the whole image streams past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        weight = w[f, c, k, l]
                        for p in range(P):
                            out, row = z[n, f, p], x[n, c, p + k, l:]
                            for q in range(Q):
                                out[q] += weight * row[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_gather(dz, w, dx):
    """Gather: an element of dx stays; it adds a product from each output that used it."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    total = np.float32(0)
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                total += w[f, c, i - p, j - q] * dz[n, f, p, q]
                    dx[n, c, i, j] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_scatter(dz, w, dx):
    """Scatter: an element of dz stays; its products go to all inputs of its window."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    dx[n, c, i, j] = np.float32(0)
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dx[n, c, p + k, q + l] += w[f, c, k, l] * grad


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_weight_stationary(x, dz, dw):
    """Gather: an element of dw stays; it adds a product from each image and position."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for i in numba.prange(F * C * K * K):
        f, c, k, l = i // (C * K * K), i // (K * K) % C, i // K % K, i % K
        total = np.float32(0)
        for n in range(N):
            for p in range(P):
                row, grads = x[n, c, p + k, l:], dz[n, f, p]
                for q in range(Q):
                    total += row[q] * grads[q]
        dw[f, c, k, l] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_output_stationary(x, dz, dw):
    """Scatter: an element of dz stays; its products go to all weights of its filter."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for f in numba.prange(F):
        dw[f] = np.float32(0)
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dw[f, c, k, l] += x[n, c, p + k, q + l] * grad
