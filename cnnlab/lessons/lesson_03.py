"""Lesson 03, the fully connected layer: its stepper, and the exercises."""

import numba
import numpy as np

from cnnlab.check import kinds, machine_code
from cnnlab.check.verdict import differences, number_verdict
from cnnlab.plots import stepper
from cnnlab.plots.style import COLORS

IMAGES, BLOCK = 8, 4  # of the stepper: images, and rows and columns of a block of weights


def blocking() -> stepper.Stepper:
    """Step through eight images that meet a block of weights: by GEMV, and by a blocked GEMM."""
    frames, captions, places = [], [], np.arange(BLOCK**2)
    for k in range(IMAGES):
        axes = stepper.frame((4.4, 2.2), 1, 2)
        for ax, name in zip(axes, ("GEMV", "GEMM"), strict=True):
            fresh = name == "GEMV" or k == 0
            look = {"color": COLORS["device" if fresh else "vector"], "marker": "s", "ls": ""}
            ax.plot(places % BLOCK, places // BLOCK, **look, ms=16)
            ax.plot([6] * IMAGES, np.arange(IMAGES) / 2 - 0.25, **look | {"color": "#d0d0d0"}, ms=8)
            ax.plot(6, k / 2 - 0.25, **look | {"color": COLORS["device"]}, ms=8)
            count = 4 if name == "GEMV" else 4 / (k + 1)
            ax.set_title(f"{name}\nweights: {count:.2g} B per multiply-add", fontsize=8)
            ax.set(xlim=(-0.7, 6.5), ylim=(3.7, -0.7), yticks=[], frame_on=False)
            ax.set_xticks([1.5, 6], ["weights", "images"], size=9)
            ax.tick_params(length=0)
            ax.grid(visible=False)
        frames.append(axes[0].figure)
        again = "the GEMV loads the block again" if k else "both load the block"
        captions.append(f"Image {k + 1} meets the block: {again}.")
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
        expected = np.exp(logits - np.logaddexp.reduce(logits)) - (np.arange(10) == label)
        got = np.asarray(answer(logits.copy(), label), float)
        if np.isnan(got).any():
            return f"logits up to {logits.max():.4g}, label {label}: got NaN"
        if said := differences("gradient", got, expected, np.full(10, 1e-6)):
            return f"logits up to {logits.max():.4g}, label {label}: {said}"
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
    """A square layer hides the exchanged bounds, symmetric weights the exchanged indices of w."""
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
    """Four sums need not wait for each other, and each weight is loaded once for four images."""
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
