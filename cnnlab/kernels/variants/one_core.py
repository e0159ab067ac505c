"""Lesson 05: the convolution with its sigmoid, from naive to fast in six rungs, each one idea.

Rungs 1 to 3 take one image after the other, x (N,C,H,W) → y (N,F,P,Q). From rung 4 on, sixteen
images lie side by side, x (C,H,W*16) → y (P,F,Q*16): element j*16 + n of a row is pixel j of image
n. `cnnlab.kernels.vector` uses all of these ideas.
"""

import numba
import numpy as np

from cnnlab.kernels import reference


@numba.njit
def conv_sigmoid_1_naive(x, w, b, y):
    """Rung 1: the loops of the formula."""
    for n in range(y.shape[0]):
        for f in range(y.shape[1]):
            for p in range(y.shape[2]):
                for q in range(y.shape[3]):
                    total = 0.0
                    for c in range(w.shape[1]):
                        for k in range(w.shape[2]):
                            for l in range(w.shape[3]):
                                total += w[f, c, k, l] * x[n, c, p + k, q + l]
                    y[n, f, p, q] = 1 / (1 + np.exp(-(total + b[f])))


@numba.njit(fastmath=True, error_model="numpy")
def conv_sigmoid_2_float32(x, w, b, y):
    """Rung 2: float32 throughout; the compiler may reorder sums and skip checks for zero."""
    one = np.float32(1)
    for n in range(y.shape[0]):
        for f in range(y.shape[1]):
            for p in range(y.shape[2]):
                for q in range(y.shape[3]):
                    total = b[f]
                    for c in range(w.shape[1]):
                        for k in range(w.shape[2]):
                            for l in range(w.shape[3]):
                                total += w[f, c, k, l] * x[n, c, p + k, q + l]
                    y[n, f, p, q] = one / (one + np.exp(-total))


@numba.njit(fastmath=True, error_model="numpy")
def conv_sigmoid_3_rows(x, w, b, y):
    """Rung 3: another loop order; the innermost loop runs along a row."""
    one = np.float32(1)
    for n in range(y.shape[0]):
        for f in range(y.shape[1]):
            for p in range(y.shape[2]):
                row = y[n, f, p]
                row[:] = b[f]
                for c in range(w.shape[1]):
                    for k in range(w.shape[2]):
                        for l in range(w.shape[3]):
                            tap, weight = x[n, c, p + k, l:], w[f, c, k, l]
                            for q in range(row.size):
                                row[q] += weight * tap[q]
                for q in range(row.size):
                    row[q] = one / (one + np.exp(-row[q]))


@numba.njit(fastmath=True, error_model="numpy")
def conv_sigmoid_4_batch_innermost(x, w, b, y):
    """Rung 4: another layout; sixteen images side by side make each row sixteen times longer."""
    one = np.float32(1)
    for p in range(y.shape[0]):
        for f in range(y.shape[1]):
            row = y[p, f]
            row[:] = b[f]
            for c in range(w.shape[1]):
                for k in range(w.shape[2]):
                    for l in range(w.shape[3]):
                        tap, weight = x[c, p + k, l * 16 :], w[f, c, k, l]
                        for m in range(row.size):
                            row[m] += weight * tap[m]
            for m in range(row.size):
                row[m] = one / (one + np.exp(-row[m]))


@numba.njit(fastmath=True, error_model="numpy")
def conv_sigmoid_5_five_taps(x, w, b, y):
    """Rung 5, for K = 5: five taps in a pass, so a row is loaded and stored once for all five."""
    one = np.float32(1)
    for p in range(y.shape[0]):
        for f in range(y.shape[1]):
            row = y[p, f]
            row[:] = b[f]
            for c in range(w.shape[1]):
                for k in range(w.shape[2]):
                    tap, v = x[c, p + k], w[f, c, k]
                    w0, w1, w2, w3, w4 = v[0], v[1], v[2], v[3], v[4]
                    for m in range(row.size):
                        near = w0 * tap[m] + w1 * tap[m + 16] + w2 * tap[m + 32]
                        row[m] += near + w3 * tap[m + 48] + w4 * tap[m + 64]
            for m in range(row.size):
                row[m] = one / (one + np.exp(-row[m]))


@numba.njit(fastmath={"contract", "arcp", "nsz"}, error_model="numpy")
def conv_sigmoid_6_polynomial(x, w, b, y):
    """Rung 6, for K = 5: exp without a call, as 2^n times a polynomial, so it becomes vectors."""
    one, log2e, ln2 = np.float32(1), np.float32(1.44269504), np.float32(0.69314718)
    shift = np.float32(12583039)  # 1.5 * 2^23 + 127, see `vector.activation.sigmoid`
    for p in range(y.shape[0]):
        for f in range(y.shape[1]):
            row = y[p, f]
            row[:] = b[f]
            for c in range(w.shape[1]):
                for k in range(w.shape[2]):
                    tap, v = x[c, p + k], w[f, c, k]
                    w0, w1, w2, w3, w4 = v[0], v[1], v[2], v[3], v[4]
                    for m in range(row.size):
                        near = w0 * tap[m] + w1 * tap[m + 16] + w2 * tap[m + 32]
                        row[m] += near + w3 * tap[m + 48] + w4 * tap[m + 64]
            for m in range(row.size):
                t = min(max(-row[m], np.float32(-87)), np.float32(88))
                rounded = np.float32(t * log2e + shift)
                power = np.int32(rounded.view(np.int32) << np.int32(23)).view(np.float32)
                r = t - (rounded - shift) * ln2
                e = np.float32(1 / 120) + r * np.float32(1 / 720)
                e = np.float32(1 / 6) + r * (np.float32(1 / 24) + r * e)
                e = one + r * (one + r * (np.float32(1 / 2) + r * e))
                row[m] = one / (one + e * power)


RUNGS = {
    "1 naive": conv_sigmoid_1_naive,
    "2 float32": conv_sigmoid_2_float32,
    "3 rows": conv_sigmoid_3_rows,
    "4 batch innermost": conv_sigmoid_4_batch_innermost,
    "5 five taps": conv_sigmoid_5_five_taps,
    "6 polynomial": conv_sigmoid_6_polynomial,
}


class Block:
    """Sixteen images as arguments of the rungs, in the layout of each."""

    def __init__(self, images, w, b):
        """Take images (16,C,H,W), w (F,C,K,K) and b (F), all float32 and C-contiguous."""
        N, C, H, W = images.shape
        F, K = len(b), w.shape[2]
        if N != 16:
            raise ValueError(f"images: expected 16, got {N}")
        self.images, self.w, self.b = images, w, b
        self.lanes = np.ascontiguousarray(images.transpose(1, 2, 3, 0)).reshape(C, H, W * 16)
        self.y = np.empty((N, F, H - K + 1, W - K + 1), np.float32)
        self.y_lanes = np.empty((H - K + 1, F, (W - K + 1) * 16), np.float32)

    def run(self, rung: str, kernel=None) -> None:
        """Run one of RUNGS on the block, or a `kernel` in its place."""
        x, y = (self.images, self.y) if rung < "4" else (self.lanes, self.y_lanes)
        (kernel or RUNGS[rung])(x, self.w, self.b, y)

    def result(self, rung: str, kernel=None) -> np.ndarray:
        """The outputs of a rung (16,F,P,Q), which were NaN before it ran."""
        self.y[:], self.y_lanes[:] = np.nan, np.nan
        self.run(rung, kernel)
        if rung < "4":
            return self.y
        P, F, M = self.y_lanes.shape
        return self.y_lanes.reshape(P, F, M // 16, 16).transpose(3, 1, 0, 2)

    def expected(self) -> np.ndarray:
        """The outputs of the reference, in float64."""
        z = np.empty(self.y.shape)
        x, w, b = (a.astype(np.float64) for a in (self.images, self.w, self.b))
        reference.conv_forward(x, w, b, z)
        y = np.empty_like(z)
        reference.sigmoid(z, y)
        return y
