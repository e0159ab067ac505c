"""Lesson 05, one core: proofs and times of the rungs, their drawings, and the exercises."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, machine_code, operation
from cnnlab.check.inputs import STRIDE_ONE
from cnnlab.kernels import KERNELS, reference
from cnnlab.measure import machine
from cnnlab.measure import timing as measure
from cnnlab.plots import charts, pictures
from cnnlab.plots.style import GREY, measured

LANES = 16  # images side by side
FLOPS = 2 * LANES * 6 * 24 * 24 * 25  # of the sums, in the report's network


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

    some = [case for case in STRIDE_ONE if case.sizes["N"] <= LANES]
    cases = [case for case in some if kernel in (None, case.sizes["K"])]
    operation.prove("conv_forward", conv_forward if copy else sums, cases=cases)


def rung(x, w, b, sums: Callable, sigmoid: Callable, copy: Callable | None = None) -> dict:
    """The calls of a rung on images (N,C,H,W) with filters (F,C,K,L), by name.

    Its parts are "copy", if it has one, "sums" and "sigmoid"; "whole" calls them in turn; "check"
    raises AssertionError where a result differs from the reference in float64.
    """
    (N, _, H, W), (F, _, K, L) = x.shape, w.shape
    exact = np.empty((N, F, H - K + 1, W - L + 1))
    reference.conv_forward(*(a.astype(np.float64) for a in (x, w, b)), exact)
    if copy:
        exact = exact.transpose(2, 1, 3, 0).reshape(H - K + 1, F, -1)
    z, y = (np.full(exact.shape, np.nan, np.float32) for _ in range(2))
    calls = {"copy": functools.partial(copy, x)} if copy else {}
    calls["sums"] = functools.partial(sums, copy(x) if copy else x, w, b, z)
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
    """The Timing of each rung, `(sums, sigmoid)` or `(sums, sigmoid, copy)`, on sixteen images.

    All are checked, then timed in turn, whole and in parts; a part has the key `(rung, part)`.
    """
    calls, checks = {}, {}
    for name, kernels in rungs.items():
        result = rung(x, w, b, *kernels)
        checks[name], calls[name] = result.pop("check"), result.pop("whole")
        calls |= {(name, part): call for part, call in result.items()}
    return measure.compare(calls, checks=checks, repeats=15, min_time=5e-4)  # caches are warm


def parts(timings: Mapping) -> dict[str, dict[str, float]]:
    """The median seconds of the parts of each rung, from what `climb` returns."""
    of_parts = [(*key, timing) for key, timing in timings.items() if isinstance(key, tuple)]
    return {name: {p: t.median for n, p, t in of_parts if n == name} for name, *_ in of_parts}


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
            H = max(1, 1536 // length)  # about as much work for each length
            x = rng.random((N, 1, H, Q + L - 1), np.float32)
            w, b = rng.random((6, 1, 1, L), np.float32), np.zeros(6, np.float32)
            result, key = rung(x, w, b, sums, sigmoid, *copy), (name, length)
            calls[key], checks[key], work[key] = result["sums"], result["check"], N * 6 * H * Q * L
    result = {name: {} for name in kernels}
    for (name, length), timing in measure.compare(calls, checks=checks, repeats=9).items():
        samples = tuple(s / work[name, length] for s in timing.samples)
        result[name][length] = measure.Timing(name, samples)
    return result


@measured
def ladder(timings: Mapping) -> Axes:
    """Draw the rungs' times in parts, with the least that their sums can take on one core."""
    ax = charts.parts.__wrapped__(parts(timings), per="16 images")
    peak, lanes = machine.float32_peak(), machine.describe()["simd_lanes"] or 1
    bounds = {"sums at the core's peak": (peak, "--"), "… in one lane": (peak / lanes, ":")}
    for name, (rate, line) in bounds.items():
        ax.axvline(1e6 * FLOPS / rate, color=GREY, linestyle=line, label=name, zorder=0)
    ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0)
    return ax


def lengths(result: Mapping[str, Mapping[int, measure.Timing]], title: str) -> Axes:
    """Draw the time of a multiply-add over the length of the innermost loop, of each kernel."""
    series = {name: list(each.values()) for name, each in result.items()}
    lines = {name: [timing.median for timing in each] for name, each in series.items()}
    sizes, unit = list(next(iter(result.values()))), "length of the innermost loop"
    return pictures.times_by_size(sizes, series, lines, unit=unit, title=title)


def roofline(timings: Mapping) -> Axes:
    """Draw the sums of the rungs under the roofline of one core, with the roofs of its caches."""
    intensity = FLOPS / (4 * LANES * (28 * 28 + 6 * 24 * 24))
    peak, lanes = machine.float32_peak(), machine.describe()["simd_lanes"] or 1
    caches = {name: rate for name, rate in machine.roofs().items() if name != "memory"}
    points = {name: (intensity, FLOPS / group["sums"]) for name, group in parts(timings).items()}
    how = {"ceilings": {"one number at a time": peak / lanes}, "caches": caches}
    how["title"] = f"Rung 5's sums reach {points['5 five taps'][1] / peak:.0%} of the peak"
    return charts.roofline(points, peak, machine.memory_bandwidth(), **how)


@kinds.choice(
    ["A", "B", "C"],
    "A takes 32 elements a pass, B 8, C one. Which of them have a whole pass to do?",
)
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
    db, exact = np.full(3, np.nan, np.float32), dz.astype(np.float64).sum(axis=(0, 2))
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


@kinds.tested(
    an_accumulator_each,
    "One accumulator for each number of a row: np.zeros(dz.shape[2], np.float32).",
)
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
    lanes = np.zeros((C, H, stride, W // stride + 1, 16), np.float32)
    row = np.zeros(16 * Q, np.float32)
    for first in range(0, N, 16):
        count = min(16, N - first)
        for n in range(count):
            for j in range(W):
                lanes[:, :, j % stride, j // stride, n] = x[first + n, :, :, j]
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
                z[first : first + count, f, p] = row.reshape(Q, 16).T[:count]
