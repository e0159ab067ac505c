"""Convolution as one matrix product: im2col writes the window of every result into a column.

After Chellapilla, Puri and Simard (2006), and Chetlur et al., cuDNN (arXiv 1410.0759). The product
is NumPy's, so that of a BLAS; the loops only copy.
"""

import numba
import numpy as np


@numba.njit
def unfold(x, columns):
    """Each window of x (N,C,H,W) becomes a column: columns (C,K,K,N,P,Q)."""
    C, K, _, N, P, Q = columns.shape
    for c in range(C):
        for k in range(K):
            for l in range(K):
                for n in range(N):
                    for p in range(P):
                        row, out = x[n, c, p + k], columns[c, k, l, n, p]
                        for q in range(Q):
                            out[q] = row[q + l]


@numba.njit
def fold(columns, dx):
    """The way back, col2im: columns (C,K,K,N,P,Q) are added up in dx (N,C,H,W)."""
    C, K, _, N, P, Q = columns.shape
    dx[:] = 0
    for c in range(C):
        for k in range(K):
            for l in range(K):
                for n in range(N):
                    for p in range(P):
                        row, out = columns[c, k, l, n, p], dx[n, c, p + k]
                        for q in range(Q):
                            out[q + l] += row[q]


def conv_forward_im2col(x, w, b, z):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    (N, F, P, Q), (C, K) = z.shape, w.shape[1:3]
    columns = np.empty((C, K, K, N, P, Q), x.dtype)
    unfold(x, columns)
    product = w.reshape(F, C * K * K) @ columns.reshape(C * K * K, N * P * Q)
    z[:] = product.reshape(F, N, P, Q).swapaxes(0, 1)
    z += b[:, None, None]


def conv_backward_weights_im2col(x, dz, dw):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    (N, F, P, Q), (C, K) = dz.shape, dw.shape[1:3]
    columns = np.empty((C, K, K, N, P, Q), x.dtype)
    unfold(x, columns)
    rows = dz.swapaxes(0, 1).reshape(F, N * P * Q)
    dw[:] = (rows @ columns.reshape(C * K * K, N * P * Q).T).reshape(dw.shape)


def conv_backward_input_im2col(dz, w, dx):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    (N, F, P, Q), (C, K) = dz.shape, w.shape[1:3]
    rows = dz.swapaxes(0, 1).reshape(F, N * P * Q)
    columns = w.reshape(F, C * K * K).T @ rows
    fold(columns.reshape(C, K, K, N, P, Q), dx)


def workspace(operation, N, C, F, H, W, K):
    """Bytes beside inputs and outputs: the columns, and a transposed copy of z or dz.

    Of a single image or filter NumPy can do without that copy.
    """
    pixels = N * (H - K + 1) * (W - K + 1)
    return 4 * pixels * (C * K * K + F)
