"""Lesson 05, one core: proofs and times of the rungs, their drawings, and the exercises."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

import numba
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from cnnlab.check import kinds, machine_code, operation
from cnnlab.check.inputs import STRIDE_ONE
from cnnlab.check.machine_code import bodies, compiled, counts, passes  # noqa: F401
from cnnlab.kernels import KERNELS, lanes, reference
from cnnlab.measure import timing as measure
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import LAYERS

LANES = 16  # images side by side
TERMS = LANES * 6 * 24 * 24 * 25  # multiply-adds of the sums, in the report's network


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
    """The calls of a rung, on images (N,C,H,W) with filters (F,C,K,L): "copy", if it has one,
    "sums", "sigmoid"; and "check", which raises AssertionError where a result is wrong.
    """
    (N, _, H, W), (F, _, K, L) = x.shape, w.shape
    exact = np.empty((N, F, H - K + 1, W - L + 1))
    reference.conv_forward(*(a.astype(np.float64) for a in (x, w, b)), exact)
    exact = exact.transpose(2, 1, 3, 0).reshape(H - K + 1, F, -1) if copy else exact
    calls = {"copy": functools.partial(copy, x)} if copy else {}
    pixels = copy(x) if copy else x
    laid, z, y = (lanes.zeros(*a.shape) for a in (pixels, exact, exact))  # as cache lines lie
    laid[:], z[:] = pixels, np.nan
    calls["sums"] = functools.partial(sums, laid, w, b, z)
    calls["sigmoid"] = functools.partial(sigmoid, z.reshape(-1), y.reshape(-1))

    def check() -> None:
        for call in calls.values():
            call()
        measure.same(z, exact)
        measure.same(y, 1 / (1 + np.exp(-exact)))

    return {"check": check, **calls}


def climb(rungs: Mapping[str, Sequence[Callable]], x, w, b) -> dict:
    """The Timing of each rung, `(sums, sigmoid)` or `(sums, sigmoid, copy)`, checked first.

    The key `(rung, part)` has the Timing of the rung up to that part, which is not the last.
    """
    calls, checks = {}, {}
    for name, kernels in rungs.items():
        steps = rung(x, w, b, *kernels)
        checks[name], each = steps.pop("check"), list(steps.values())
        for k, part in enumerate(steps, 1):
            key = name if k == len(each) else (name, part)
            calls[key] = lambda some=tuple(each[:k]): [call() for call in some]
    return measure.compare(calls, checks=checks, repeats=25, min_time=2e-3)  # caches are warm


def parts(timings: Mapping) -> dict[str, dict[str, float]]:
    """By how many seconds each part lengthens its rung: they add up to the median of `climb`."""
    result = {}
    for name in (key for key in timings if isinstance(key, str)):
        keys = {part: (name, part) for part in ("copy", "sums")} | {"sigmoid": name}
        ends = {part: timings[key].median for part, key in keys.items() if key in timings}
        result[name] = dict(zip(ends, np.diff(list(ends.values()), prepend=0.0), strict=True))
    return result


def by_length(kernels: Mapping[str, Sequence], lengths: Sequence[int]) -> dict[str, dict]:
    """The time of one innermost loop, by its length, of kernels checked first.

    It runs over `(sums, "taps")`, `(sums, "pixels")`, or side by side `(…, "pixels", copy)`.
    """
    rng, sigmoid = np.random.default_rng(0), KERNELS["vector"].kernel("sigmoid")
    calls, checks, n_loops = {}, {}, {}
    for name, (sums, along, *copy) in kernels.items():
        N = LANES if copy else 1
        for length in lengths:
            L, Q = (length, 24) if along == "taps" else (5, length // N)
            P = max(1, TERMS // (30 * N * Q * L))  # as much work for each length, or nearly
            x = rng.random((N, 1, P + 4, Q + L - 1), np.float32)
            w, b = rng.random((6, 1, 5, L), np.float32), np.zeros(6, np.float32)
            result, key = rung(x, w, b, sums, sigmoid, *copy), (name, length)
            calls[key], checks[key] = result["sums"], result["check"]
            n_loops[key] = N * 30 * P * Q * L / length
    result = {name: {} for name in kernels}
    for (name, n), timing in measure.compare(calls, checks=checks, repeats=31).items():
        result[name][n] = measure.Timing(name, tuple(s / n_loops[name, n] for s in timing.samples))
    return result


def inner_loops(rows: Callable, lanes: Callable, five_taps: Callable) -> Stepper:
    """A stepper through the loops of rungs 3 to 5: what they load and store on this machine."""
    longest = (rows, 24), (lanes, 384), (five_taps, 5 * 384)
    n, m, five = (next(n for n in bodies(kernel) if n <= most) for kernel, most in longest)
    short, long, last = (counts(kernel, most) for kernel, most in longest)
    at, five = 15 // n * n, five // 5
    # Rung, first pixel, first result, how many; loads, stores and terms of a pass; what happens.
    events = (
        (3, 0, 0, n, short, f"{n} pixels and {n} results are loaded, the results stored"),
        (3, at + 1, at, n, short, "later pass, next tap, pixel + 1: a vector straddles two lines"),
        (4, 0, 0, m, long, "pixel 0 of sixteen images, then pixel 1, …: whole cache lines"),
        (4, 16, 0, m, long, f"the next tap, {384 // m} passes on. Results come and go again"),
        (5, 0, 0, five, last, "pixels of all five taps; results come and go once for five terms"),
    )
    title = "A pass of an innermost loop: blue pixels are loaded, brown results loaded and stored"
    captions = [f"Rung {event[0]}: {event[-1]}." for event in events]
    frames = [functools.partial(one_pass, *event[:-1]) for event in events]
    return stepper(frames, title=title, captions=captions)


def one_pass(rung: int, pixel: int, first: int, n: int, counts: Sequence[int], ax: Axes) -> None:
    """Draw the pixels and results of a pass, which are neighbours in memory: down, then across."""
    images, (loads, stores, terms, _) = (1 if rung == 3 else LANES), counts
    cells, more = np.zeros((2, 28 * images)), 4 * LANES if rung == 5 else 0  # for four more taps
    cells[0, pixel : pixel + n + more], cells[1, first : first + n] = 1, 2
    cells = cells.reshape(2, 28, images).swapaxes(1, 2).reshape(-1, 28)
    shades = ListedColormap(["white", LAYERS[1], LAYERS[4]])
    ax.pcolormesh(cells, cmap=shades, vmin=0, vmax=2, edgecolors="lightgrey", linewidth=0.3)
    ax.vlines(range(0, 29, LANES // images), 0, 2 * images, color="grey", linewidth=0.7)
    ax.axhline(images, color="black")
    ax.set(ylim=(2 * images, 0), yticks=(images / 2, 1.5 * images), xlabel="column")
    ax.set_yticklabels(("pixels", "results"))
    ax.set_title(f"vectors: {loads} loaded, {stores} stored, for {terms} of terms", fontsize=10)


@kinds.choice("ABC", "A takes 32 elements a pass, then B 8, then C one. How many passes has each?")
def which_loop():
    """28 = 3 × 8 + 4 × 1: C runs once more than B. 96 = 3 × 32: only A runs."""
    return ["C", "A"]


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
    """Three multiply-adds instead of six. The division stays."""
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
    fast = getattr(answer, "targetoptions", {}).get("fastmath")
    return "expected no fastmath: use more accumulators" if fast else without_vectors(answer)


def without_vectors(answer: Callable) -> str:
    """What is wrong with a kernel that is not compiled to vector instructions, or nothing."""
    if not hasattr(answer, "inspect_asm"):
        return "expected a compiled kernel, got plain Python: decorate it with @numba.njit"
    if re.search(r"\bexpf?\b", machine_code.assembly(answer)):
        return "its machine code calls exp"
    count = machine_code.vector_instructions(answer)
    return "" if count else "there are no vector instructions in its machine code"


@kinds.tested(an_accumulator_each, "How many sums could grow at once?", "A total for each m.")
@numba.njit
def bias_in_vectors(dz, db):
    """Scalar expansion of a reduction: many sums grow, and no long chain is left to add."""
    for f in range(dz.shape[1]):
        totals = np.zeros(dz.shape[2], np.float32)
        for p in range(dz.shape[0]):
            for m in range(totals.size):
                totals[m] += dz[p, f, m]
        for m in range(16, totals.size, 16):
            totals[:16] += totals[m : m + 16]
        db[f] = totals[:16].sum()


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
        some = x[first : first + 16]
        lanes = np.zeros((C, H, stride, 16 * (W // stride + 1)), np.float32)
        for c, i, j in np.ndindex(C, H, W):
            for n in range(len(some)):
                lanes[c, i, j % stride, 16 * (j // stride) + n] = some[n, c, i, j]
        for f in range(z.shape[1]):
            for p in range(z.shape[2]):
                row[:] = b[f]
                for c, k, l in np.ndindex(w.shape[1:]):
                    tap = lanes[c, p * stride + k, l % stride, 16 * (l // stride) :]
                    weight = w[f, c, k, l]
                    for m in range(row.size):
                        row[m] += weight * tap[m]
                for n in range(len(some)):
                    for q in range(Q):
                        z[first + n, f, p, q] = row[16 * q + n]
