"""Lesson 03, the fully connected layer: its stepper, and the exercises."""

import numba
import numpy as np
from matplotlib.figure import Figure

from cnnlab.check import kinds, machine_code
from cnnlab.check.verdict import number_verdict
from cnnlab.plots import stepper
from cnnlab.plots.style import COLORS, GREY, style

IMAGES, BLOCK = 8, 4  # of the stepper: images, and rows and columns of a block of weights


def blocking() -> stepper.Stepper:
    """Step through eight images that meet a block of weights: by GEMV, and by a blocked GEMM."""
    frames, captions = [], []
    for k in range(1, IMAGES + 1):
        loaded = {"GEMV": 4 * BLOCK**2 * k, "GEMM": 4 * BLOCK**2}
        counts = {name: bytes / (BLOCK**2 * k) for name, bytes in loaded.items()}
        with style():
            page = Figure((4.4, 2.2), layout="constrained")
            axes = page.subplots(1, 2)
        for ax, (name, count) in zip(axes, counts.items(), strict=True):
            fresh = name == "GEMV" or k == 1
            shade = COLORS["device" if fresh else "vector"]
            for j in range(BLOCK**2):
                ax.text(j % BLOCK, j // BLOCK, "w", color=shade, ha="center", va="center")
            for n in range(IMAGES):
                ax.plot(5.5, n / 2 - 0.2, "s", color=shade if n == k - 1 else GREY, ms=7)
            state = "loaded" if fresh else "in the cache"
            title = f"{name}: {state}\n{count:.1f} B per multiply-add"
            ax.set(xlim=(-0.7, 6.2), ylim=(4, -0.8), xticks=[], yticks=[])
            ax.set_title(title, fontsize=9)
            ax.grid(visible=False)
        frames.append(page)
        again = "both load the block" if k == 1 else "the GEMV loads the block again"
        captions.append(f"Image {k} meets the block: {again}.")
    return stepper.stepper(frames, title="A block of weights, eight images", captions=captions)


# --- the exercises --------------------------------------------------------------------------------


def wrong_loss(answer) -> str:
    """What is wrong with a loss, at fresh small numbers and at large ones; "" if nothing is."""
    small = kinds.generator().uniform(-3, 3, 2)
    for z, t in [(small[0], 0), (small[1], 1), (40, 0), (-1000, 1), (1000, 0), (1000, 1)]:
        got, expected = answer(np.float64(z), t), np.logaddexp(0, z) - t * z
        result = number_verdict(f"at z={z:.6g}, t={t}", got, expected, 1e-6)
        if not result:
            return result.text
    return ""


@kinds.tested(
    wrong_loss,
    "For a large positive z, exp(z) overflows, and exp(-z) does not: can you take it out?",
    "log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)).",
)
def loss_from_z(z, t):
    """The exponential is never of a positive number, so it is at most 1."""
    return max(z, 0) - t * z + np.log1p(np.exp(-abs(z)))


def wrong_gradient(answer) -> str:
    """What is wrong with a gradient of softmax and cross-entropy; "" if nothing is."""
    z = kinds.generator().normal(size=10)
    for logits, label in [(z, 3), (z, 0), (100 * z + 1000, 7)]:
        p = np.exp(logits - np.logaddexp.reduce(logits))
        got = np.asarray(answer(logits.copy(), label), float)
        if got.shape != (10,):
            return f"expected shape (10,), got {got.shape}"
        for k in range(10):
            at = f"at logits up to {logits.max():.4g}, label {label}, output {k}"
            if not (result := number_verdict(at, got[k], p[k] - (k == label), 1e-6)):
                return result.text
    return ""


@kinds.tested(
    wrong_gradient,
    "L = log Σ exp(z) − z of the label. What is the derivative of each term by one z?",
    "Take the largest z from all of them first: the quotient stays, and nothing overflows.",
)
def softmax_gradient(z, label):
    """Probability minus target: once more y − onehot."""
    y = np.exp(z - z.max())
    y /= y.sum()
    y[label] -= 1
    return y


@kinds.kernel(
    "dense_backward_input",
    "Which index runs to D, and which to O? Try the kernel on a layer that is not square.",
    "dx[n, i] has i below D; each of these sums over all o below O, with w[o, i].",
)
@numba.njit
def repaired(dz, w, dx):
    """Both bounds were exchanged, and so were w's indices: in a square layer only w shows."""
    for n in range(dx.shape[0]):
        for i in range(dx.shape[1]):
            dx[n, i] = 0
            for o in range(dz.shape[1]):
                dx[n, i] += w[o, i] * dz[n, o]


@kinds.kernel(
    "dense_forward",
    "Lay x out as (D, N) and z as (N, O) → (O, N): x.T.copy(). Which loop can then be innermost?",
    "For each o and i: columns[o, :] += w[o, i] * x_columns[i, :], with the images innermost.",
    by=machine_code.kernel,
)
@numba.njit
def axpy_forward(x, w, b, z):
    """Along images, neighbours need not wait for each other; the copies are small beside it."""
    columns, result = x.T.copy(), np.empty((z.shape[1], z.shape[0]), z.dtype)
    for o in range(z.shape[1]):
        row = result[o]
        row[:] = b[o]
        for i in range(x.shape[1]):
            for n in range(z.shape[0]):
                row[n] += w[o, i] * columns[i, n]
    z[:] = result.T


@kinds.kernel(
    "dense_forward",
    "Four totals for images n to n + 3, and one loop over i: load w[o, i] once, use it four times.",
    "range(0, N - 3, 4) takes the images by fours. Those left over, from N - N % 4 on, need plain "
    "loops.",
)
@numba.njit
def four_images(x, w, b, z):
    """Two causes: fewer loads, and four sums that need not wait for each other."""
    N = z.shape[0]
    for n in range(0, N - 3, 4):
        for o in range(z.shape[1]):
            t0 = t1 = t2 = t3 = b[o]
            for i in range(x.shape[1]):
                weight = w[o, i]
                t0 += weight * x[n, i]
                t1 += weight * x[n + 1, i]
                t2 += weight * x[n + 2, i]
                t3 += weight * x[n + 3, i]
            z[n, o], z[n + 1, o], z[n + 2, o], z[n + 3, o] = t0, t1, t2, t3
    for n in range(N - N % 4, N):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total
