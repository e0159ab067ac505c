"""Lesson 05, one core: proofs and times of the rungs, their drawings, and the exercises."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

import numba
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds, machine_code, operation
from cnnlab.check.inputs import STRIDE_ONE
from cnnlab.kernels import KERNELS, lanes, reference
from cnnlab.measure import timing as measure
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import LAYERS, style

LANES = 16  # images side by side
TERMS = LANES * 6 * 24 * 24 * 25  # multiply-adds of the sums, in the report's network
loops, passes = machine_code.loops, machine_code.passes


def prove(sums: Callable, copy: Callable | None = None, *, kernel: int | None = None) -> None:
    """Print the verdict on a kernel of sums, on many shapes; raise AssertionError if it is wrong.

    With `copy`, the kernel takes sixteen images side by side; with `kernel`, filters of that size.
    """

    def conv_forward(x, w, b, z):
        (N, F, P, Q), sixteen = z.shape, np.zeros((LANES, *x.shape[1:]), x.dtype)
        sixteen[-N:] = x
        laid = np.full((P, F, Q * LANES), np.nan, z.dtype)
        sums(copy(sixteen), w, b, laid)
        z[:] = laid.reshape(P, F, Q, LANES).transpose(3, 1, 0, 2)[-N:]

    few = [c for c in STRIDE_ONE if c.sizes["N"] <= LANES and kernel in (None, c.sizes["K"])]
    operation.prove("conv_forward", conv_forward if copy else sums, cases=few)


def rung(x, w, b, sums: Callable, sigmoid: Callable, copy: Callable | None = None) -> dict:
    """The calls of a rung by name, on images (N,C,H,W) with filters (F,C,K,L): "copy", if it has
    one, "sums", "sigmoid"; "whole", which calls them in turn; "check", which raises AssertionError
    where a result is wrong.
    """
    (N, _, H, W), (F, _, K, L) = x.shape, w.shape
    exact = np.empty((N, F, H - K + 1, W - L + 1))
    reference.conv_forward(*(a.astype(np.float64) for a in (x, w, b)), exact)
    if copy:
        exact = exact.transpose(2, 1, 3, 0).reshape(H - K + 1, F, -1)
    calls = {"copy": functools.partial(copy, x)} if copy else {}
    pixels = copy(x) if copy else x
    laid, z, y = (lanes.zeros(*a.shape) for a in (pixels, exact, exact))  # as cache lines lie
    laid[:], z[:] = pixels, np.nan
    calls["sums"] = functools.partial(sums, laid, w, b, z)
    calls["sigmoid"] = functools.partial(sigmoid, z, y)

    def whole() -> None:
        for call in calls.values():
            call()

    def check() -> None:
        whole()
        measure.same(z, exact)
        measure.same(y, 1 / (1 + np.exp(-exact)))

    return {"whole": whole, "check": check, **calls}


def climb(rungs: Mapping[str, Sequence[Callable]], x, w, b) -> dict:
    """The Timing of each rung, `(sums, sigmoid)` or `(sums, sigmoid, copy)`, whole and in parts.

    All are checked first. A part has the key `(rung, part)`.
    """
    calls, checks = {}, {}
    for name, kernels in rungs.items():
        result = rung(x, w, b, *kernels)
        checks[name], calls[name] = result.pop("check"), result.pop("whole")
        calls |= {(name, part): call for part, call in result.items()}
    return measure.compare(calls, checks=checks, repeats=41, min_time=5e-4)  # caches are warm


def parts(timings: Mapping) -> dict[str, dict[str, float]]:
    """The median seconds of the parts of each rung, from what `climb` returns."""
    keys = [key for key in timings if isinstance(key, tuple)]
    return {n: {p: timings[m, p].median for m, p in keys if m == n} for n, _ in keys}


def by_length(kernels: Mapping[str, Sequence], lengths: Sequence[int]) -> dict[str, dict]:
    """The time of a multiply-add, by the length of the innermost loop, of kernels checked first.

    That loop runs over `(sums, "taps")`, `(sums, "pixels")`, or side by side `(…, "pixels", copy)`.
    """
    rng, sigmoid = np.random.default_rng(0), KERNELS["vector"].kernel("sigmoid")
    calls, checks, work = {}, {}, {}
    for name, (sums, along, *copy) in kernels.items():
        N = LANES if copy else 1
        for length in lengths:
            L, Q = (length, 24) if along == "taps" else (5, length // N)
            P = max(1, TERMS // (30 * N * Q * L))  # as much work for each length, or nearly
            x = rng.random((N, 1, P + 4, Q + L - 1), np.float32)
            w, b = rng.random((6, 1, 5, L), np.float32), np.zeros(6, np.float32)
            result, key = rung(x, w, b, sums, sigmoid, *copy), (name, length)
            calls[key], checks[key], work[key] = result["sums"], result["check"], N * 30 * P * Q * L
    result = {name: {} for name in kernels}
    for key, timing in measure.compare(calls, checks=checks, repeats=21).items():
        samples = tuple(seconds / work[key] for seconds in timing.samples)
        result[key[0]][key[1]] = measure.Timing(key[0], samples)
    return result


SHADES = "white", LAYERS[1], LAYERS[3], LAYERS[4]
# Rung, first pixel, first result, how many, of how many images; loads, stores, terms; what happens.
EVENTS = (
    (1, 0, 0, 1, 1, 2, 0, 1, "a weight and a pixel are loaded: one term of one sum"),
    (1, 4, 0, 1, 1, 10, 0, 5, "after five terms, the innermost loop is over"),
    (3, 0, 0, 8, 1, 2, 1, 8, "eight pixels and eight results are loaded, the results stored"),
    (3, 16, 16, 8, 1, 6, 3, 24, "the row ends after three passes of the epilogue"),
    (3, 1, 0, 8, 1, 8, 4, 32, "the next tap: the same results come and go again"),
    (4, 0, 0, 4, 16, 8, 4, 64, "four pixels of sixteen images: a pass of the main loop"),
    (4, 1, 0, 4, 16, 56, 28, 448, "five passes later, the next tap: results come and go again"),
    (5, 0, 0, 4, 16, 4, 0, 64, "pixels are multiplied by the first of five weights"),
    (5, 4, 0, 4, 16, 20, 0, 320, "the fifth weight: the sums are still in registers"),
    (5, 4, 0, 4, 16, 24, 4, 320, "results are loaded, added to and stored, once for five terms"),
)


def inner_loops() -> Stepper:
    """A stepper through the innermost loops of rungs 1, 3, 4 and 5: what is loaded and stored."""
    frames, captions = [], []
    for rung, pixel, first, n, images, loads, stores, terms, said in EVENTS:
        with style():
            page = Figure((4.4, 2.7))
            axes = page.subplots(2, 1)
        rows = ("pixel", 28, pixel, 1), ("result", 24, first, 3 if stores else 2)
        for ax, (what, width, at, shade) in zip(axes, rows, strict=True):
            cells = np.zeros((LANES, width))
            cells[:images, at : at + n] = shade
            ax.pcolormesh(cells, cmap=ListedColormap(SHADES), vmin=0, vmax=3)
            ax.set(xlim=(0, 28), ylim=(LANES, 0), xticks=range(0, 28, 8), yticks=(0, LANES))
            ax.set_ylabel(f"{what}s\nby image", fontsize=8)
        axes[0].set_title(f"{loads} loads, {stores} stores, {terms} terms", fontsize=10)
        frames.append(page)
        captions.append(f"Rung {rung}: {said}.")
    title = "Innermost loops: blue pixels loaded, pale sums in registers, brown results stored"
    return stepper(frames, title=title, captions=captions)


@kinds.choice("ABC", "A takes 32 elements a pass, B 8, C one. Which have a whole pass to do?")
def which_loop():
    """24 pixels are three passes of the epilogue B, five taps are five of the remainder C."""
    return ["B", "C"]


def thousandth(answer: Callable) -> str:
    """What is wrong with a sigmoid that may be off by a thousandth of its value, or nothing."""
    z = np.linspace(-80, 80, 20_001, dtype=np.float32)
    y, exact = np.full_like(z, np.nan), 1 / (1 + np.exp(-z.astype(np.float64)))
    answer(z, y)
    error = np.abs(y / exact - 1)
    if not error.max() <= 1e-3:
        at = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        return f"at z = {z[at]:.4g} expected {exact[at]:.5g}, to a thousandth, got {y[at]:.5g}"
    if wrong := without_vectors(answer):
        return wrong
    pair = {"mine": answer, "six": KERNELS["vector"].kernel("sigmoid")}
    timed = measure.compare({k: functools.partial(kernel, z, y) for k, kernel in pair.items()})
    print(f"It takes {measure.ratio(*timed.values()).value:.0%} of the time of `vector`'s sigmoid.")
    return ""


@kinds.tested(
    thousandth,
    "Which is the lowest degree in the table whose error is below a thousandth?",
    "Degree 3: e = 1 + r (1 + r (1/2 + r/6)), and the rest as above.",
)
@numba.njit(error_model="numpy")
def sigmoid_to_a_thousandth(z, y):
    """Three multiply-adds instead of six. A network whose weights have 16 bits needs no more."""
    one, ln2, shift = np.float32(1), np.float32(0.69314718), np.float32(12583039)
    for m in range(z.size):
        t = min(max(-z[m], np.float32(-87)), np.float32(88))
        rounded = np.float32(t * (one / ln2) + shift)
        power = np.int32(rounded.view(np.int32) << np.int32(23)).view(np.float32)
        r = t - (rounded - shift) * ln2
        e = one + r * (one + r * (np.float32(1 / 2) + r * np.float32(1 / 6)))
        y[m] = one / (one + e * power)


def an_accumulator_each(answer: Callable) -> str:
    """What is wrong with a bias gradient of images side by side without fastmath, or nothing."""
    dz = np.random.default_rng().normal(size=(7, 3, 5 * LANES)).astype(np.float32)
    db, exact = np.full(3, np.nan, np.float32), dz.sum(axis=(0, 2), dtype=np.float64)
    answer(dz, db)
    if not np.allclose(db, exact, rtol=1e-4, atol=1e-3):
        return f"for dz of 7 rows, 3 filters and 5 pixels expected {exact}, got {db}"
    if getattr(answer, "targetoptions", {}).get("fastmath"):
        return "expected no fastmath: more accumulators do without"
    return without_vectors(answer)


def without_vectors(answer: Callable) -> str:
    """What is wrong with a kernel that is not compiled to vector instructions, or nothing."""
    if not hasattr(answer, "inspect_asm"):
        return "expected a compiled kernel, got plain Python: decorate it with @numba.njit"
    if re.search(r"\bexpf?\b", machine_code.assembly(answer)):
        return "its machine code calls exp"
    if not machine_code.vector_instructions(answer):
        return "there are no vector instructions in its machine code"
    return ""


@kinds.tested(an_accumulator_each, "An accumulator each: np.zeros(dz.shape[2], np.float32).")
@numba.njit
def bias_in_vectors(dz, db):
    """Loop interchange again: neighbours have accumulators of their own, in the order written."""
    for f in range(dz.shape[1]):
        totals = np.zeros(dz.shape[2], np.float32)
        for p in range(dz.shape[0]):
            for m in range(totals.size):
                totals[m] += dz[p, f, m]
        db[f] = totals.sum()


@kinds.kernel(
    "conv_forward",
    "Start from rung 3, whose innermost loop runs along a row; with a stride, pixels are apart.",
    "Copy sixteen images side by side, columns of equal j % stride beside each other.",
)
@numba.njit(error_model="numpy")
def fast_convolution(x, w, b, z, stride=1):
    """Rung 4, on a copy in which the pixels that a tap reads are neighbours at any stride."""
    (N, C, H, W), Q = x.shape, z.shape[3]
    row = np.zeros(16 * Q, np.float32)
    for first in range(0, N, 16):
        some = x[first : first + 16].transpose(1, 2, 3, 0)
        lanes = np.zeros((C, H, stride, W // stride + 1, 16), np.float32)
        for j in range(W):
            lanes[:, :, j % stride, j // stride, : some.shape[3]] = some[:, :, j]
        for f in range(z.shape[1]):
            for p in range(z.shape[2]):
                row[:] = b[f]
                for c in range(C):
                    for k in range(w.shape[2]):
                        for l in range(w.shape[3]):
                            pixels = lanes[c, p * stride + k, l % stride, l // stride :]
                            tap, weight = pixels.reshape(-1), w[f, c, k, l]
                            for m in range(row.size):
                                row[m] += weight * tap[m]
                z[first : first + 16, f, p] = row.reshape(Q, 16).T[: some.shape[3]]
