"""The exercises of lesson 63, its charts, and the steps of a product of bit planes."""

import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.measure.timing import Timing
from cnnlab.measure.timing import mean_interval as interval
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, GREY, INK, WRONG, as_rows, figure, measured, note

COUNTS = ("vpopcnt", "vpshufb", "popcnt", "cnt")  # what counts bits in vectors, else in words
ODD = {"bits": 9, "product": 9_999, "sum_x": 5_000}  # the arguments of `odd` are below these


def counted_by(kernel) -> str:
    """What a compiled kernel counts bits by, from its assembly: shuffles (`vpshufb`) look up."""
    code = "\n".join(kernel.inspect_asm().values())
    matches = (re.search(rf"^\s+({name}\w*)", code, re.MULTILINE) for name in COUNTS)
    return next((each[1] for each in matches if each), "shifts and additions")


def passes(x: np.ndarray, w: np.ndarray, x_bits: int, w_bits: int) -> Stepper:
    """Step through the product of two rows of unsigned numbers (K), a pair of planes at a time."""
    frames, captions, total = [], [], 0
    for i in range(x_bits):
        for j in range(w_bits):
            both = (x >> i & 1) & (w >> j & 1)
            total += int(both.sum()) << (i + j)
            ax = frame((4.4, 2.5))
            ax.set(xlim=(-2.2, len(x)), ylim=(-0.3, x_bits + w_bits + 2.6))
            ax.axis("off")
            for k, text in enumerate(map("{} · {}".format, x, w)):
                ax.text(k + 0.46, x_bits + w_bits + 2.1, text, ha="center", va="center", fontsize=9)
            rows = [(f"x, plane {k}", x >> k & 1, k == i) for k in reversed(range(x_bits))]
            rows += [(f"w, plane {k}", w >> k & 1, k == j) for k in reversed(range(w_bits))]
            rows += [(f"AND: {2 ** (i + j)} each", both, True)]
            for y, (name, bits, now) in enumerate(rows[::-1]):
                y += 0.6 * (y > 0)
                ax.text(-0.2, y + 0.45, name, ha="right", va="center", color=INK if now else GREY)
                for k, bit in enumerate(bits):
                    color = COLORS["device" if y == 0 else "vector"] if bit and now else "#eeeeee"
                    ax.add_patch(plt.Rectangle((k, y), 0.92, 0.9, color=color))
                    look = {"color": "white" if bit and now else INK, "fontsize": 9}
                    ax.text(k + 0.46, y + 0.45, bit, ha="center", va="center", **look)
            captions.append(f"Ones: {both.sum()}, each counts {2 ** (i + j)}. The sum is {total}.")
            frames.append(ax.figure)
    return stepper(frames, title="A product, in pairs of planes", captions=captions)


@measured
def rungs(timings: Mapping[str, Timing], words: int, alone: Timing) -> Axes:
    """Draw picoseconds a word, a bar for each kernel, and the three operations alone as a line."""
    _, ax = plt.subplots(figsize=(7.2, 0.5 * len(timings) + 1.0))
    look = {"va": "center", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
    for name, timing in timings.items():
        low, middle, high = (1e12 * s / words for s in (timing.low, timing.median, timing.high))
        ax.barh(name, middle, color=GREY if "more" in name else COLORS["vector"], height=0.6)
        ax.plot([low, high], [name, name], color=INK, lw=1)
        note(ax, f"{middle:,.0f}", (max(middle, min(high, 1.1 * middle)), name), (7, 0), **look)
    ax.axvline(1e12 * alone.median, color="black", ls="--", lw=1, label="AND, count, add alone")
    ax.set(xlabel="ps for a word of 64 products", xmargin=0.3)
    ax.legend(loc="center right", fontsize=9)
    return as_rows(ax, list(timings))


@measured
def by_passes(times: Mapping[str, Mapping[tuple, Timing]], rivals: Mapping, once, each) -> Axes:
    """Draw milliseconds over passes, p · q: of planes, the model (in seconds), float32 and int8."""
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    ax.set(xlabel="passes, p · q", ylabel="ms", xmargin=0.1, ymargin=0.1)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", subs=(2, 5))
    for (name, timing), line in zip(rivals.items(), ("-", ":"), strict=True):
        ax.axhline(1e3 * timing.median, color=COLORS["device"], ls=line, label=name)
    for (name, kept), fill in zip(times.items(), (COLORS["vector"], "none"), strict=True):
        n = np.array([p * q for p, q in kept])
        milliseconds = [1e3 * timing.median for timing in kept.values()]
        ax.plot(n, milliseconds, "o", ms=7, mfc=fill, color=COLORS["vector"], label=name)
    fine = np.geomspace(1, n.max())
    ax.plot(fine, 1e3 * (once + each * fine), color=GREY, ls="--", label="once + passes")
    for (p, q), timing in kept.items():
        offset, side = ((-8, 6), "right") if (p, q) == (4, 1) else ((9, -12), "left")
        note(ax, f"w{q}a{p}", (p * q, 1e3 * timing.median), offset, ha=side, fontsize=9)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.legend(frameon=False, fontsize=9)
    return ax


@measured
def frontier(timings: Mapping[str, Timing], less: Mapping, front: Sequence[str]) -> Axes:
    """Draw points of accuracy below float32, with their interval, over microseconds; a front."""
    _, ax = plt.subplots(figsize=(7.2, 3.2))
    edge = sorted((1e6 * timings[name].median, -np.mean(less[name])) for name in front)
    ax.step(*zip(*edge, strict=True), where="post", color=GREY, lw=1, label="Pareto front")
    ax.axvline(1e6 * timings["float32"].median, color=GREY, ls="--", lw=1)
    for name, timing in timings.items():
        (middle, half), at = interval(less[name]), 1e6 * timing.median
        rival = "float32" in name or "bytes" in name
        color, left = COLORS["device" if rival else "vector"], name in front and not rival
        ax.errorbar(at, -middle, half, fmt="o", color=color)
        offset = (-6, 5) if left else (6, 5 if rival else -11)
        look = {"ha": "right" if left else "left", "fontsize": 8, "color": color}
        note(ax, name, (at, -middle), offset, **look)
    ax.legend(loc="lower right", frameon=False, fontsize=8)
    ax.set(xscale="log", xmargin=0.4, xlabel="µs, first layer, 64 images")
    ax.set_ylabel("points above float32")
    return ax


@figure
def shares(weights: Mapping[str, np.ndarray]) -> Axes:
    """Draw how weights are spread, and below which size a ternary one is 0, by either scale."""
    _, axes = plt.subplots(1, len(weights), figsize=(7.2, 2.4), sharey=True, sharex=True)
    bins = np.linspace(-1, 1, 101) * max(abs(w).max() for w in weights.values())
    for ax, (name, w) in zip(axes, weights.items(), strict=True):
        ax.hist(w.ravel(), bins, weights=np.full(w.size, 100 / w.size), color=COLORS["vector"])
        halves = {"half the largest": abs(w).max() / 2, "half the mean": abs(w).mean() / 2}
        for (label, size), color in zip(halves.items(), (INK, WRONG), strict=True):
            ax.axvline(-size, color=color, ls="--", lw=1, label=label)
            ax.axvline(size, color=color, ls="--", lw=1)
        ax.set(title=name, xlabel="weight; 0 between the lines")
    axes[0].set_ylabel("of 100 weights")
    axes[0].legend(frameon=False, fontsize=8)
    return axes


@kinds.formula(
    lambda rng: {name: int(rng.integers(1, n)) for name, n in ODD.items()},
    "With u from 0 to 2^bits − 1, a weight is w = 2 u − (2^bits − 1). Put that into Σ w x.",
    "Σ w x = 2 Σ u x − (2^bits − 1) Σ x. One bit is the mixed product above.",
)
def odd(bits, product, sum_x):
    """A sum over x corrects for any number of bits: no pass more. (The sum itself takes time.)"""
    return 2 * product - (2**bits - 1) * sum_x


def _as_product(product) -> str:
    rng = kinds.generator()
    for p, q, n in ((1, 2, 64), (3, 2, 100), (2, 4, 30)):
        x, w = rng.integers(0, 2**p, (3, n)), rng.integers(-(2 ** (q - 1)), 2 ** (q - 1), (5, n))
        calls, shape = [], (3, 5, -(-n // 8))

        def count(words, calls=calls, shape=shape):
            if np.shape(words) != shape or words.dtype != np.uint8:
                raise ValueError(f"count: expected bytes {shape}, got {np.shape(words)}")
            calls.append(1)
            return np.bitwise_count(words).sum(-1, dtype=int)

        got = product(x.copy(), w.copy(), p, q, count)
        if len(calls) != p * q:
            return f"{p} bits by {q}: {len(calls)} calls of count, and passes are {p * q}"
        if not np.array_equal(got, x @ w.T):
            return f"{p} bits by {q}: not the product of x and w"
    return ""


@kinds.tested(
    _as_product,
    "Bit i of all numbers is x >> i & 1; a[:, None] & b has each row of a with each of b.",
    "How much does a pass of planes i and j count? Which planes of w count less than nothing?",
)
def product(x, w, p, q, count):
    """Zeros that fill the last byte add nothing to AND; only the top plane of w has a minus."""
    total = 0
    for i in range(p):
        for j in range(q):
            a, b = np.packbits(x >> i & 1, axis=1), np.packbits(w >> j & 1, axis=1)
            worth = -(2 ** (i + j)) if j == q - 1 else 2 ** (i + j)
            total = total + worth * count(a[:, None] & b)
    return total


def _as_fold(thresholds) -> str:
    rng, sums = kinds.generator(), np.arange(-300, 301)[:, None]
    for n in (1, 4, 50):
        f, b = rng.choice([-1, 1], n) * rng.uniform(0.003, 0.1, n), rng.uniform(-2, 2, n)
        limits, signs = thresholds(f.copy(), b.copy())
        shapes = np.shape(limits), np.shape(signs)
        if shapes != ((3, n), (n,)):
            return f"expected shapes (3, {n}) and ({n},), got {shapes}"
        if limits.dtype.kind != "i" or (abs(signs) != 1).any():
            return "expected limits of whole numbers, and signs of 1 or -1"
        got = (signs * sums > limits[:, None]).sum(0)
        off = np.argwhere(got != np.rint(3 * np.clip(f * sums + b, 0, 1)))
        for t, k in off[:1]:
            return f"f = {f[k]:.3f}, b = {b[k]:.3f}, t = {sums[t, 0]}: the level is not {got[t, k]}"
    return ""


@kinds.tested(
    _as_fold,
    "The level rises where f t + b passes 1/6, 3/6 and 5/6. At which t is that, for f > 0?",
    "A t is whole: it exceeds a number where it exceeds its floor. For f < 0 compare −t, with −f.",
)
def fold(f, b):
    """A negative f turns the sum: compare −t. (Storing −w needs a code: of −2 … 1, −2 has none.)"""
    halfway = np.array([[0.5], [1.5], [2.5]]) / 3
    return np.floor((halfway - b) / abs(f)).astype(np.int64), np.sign(f).astype(np.int64)


def _as_seven(total) -> str:
    rng = kinds.generator()
    for n in (1, 3, 16):
        words, calls = rng.integers(0, 2**64, (7, n), dtype=np.uint64), []

        def count(row, calls=calls, n=n):
            if np.shape(row) != (n,):
                raise ValueError(f"count: expected a row of {n}, got shape {np.shape(row)}")
            calls.append(1)
            return ones(row)

        got, expected = total(words.copy(), count), ones(words)
        if np.ndim(got) or got != expected:
            return f"7 × {n} words: expected {expected} ones, got {got}"
        if len(calls) > 3:
            return f"{len(calls)} counts, and three are enough"
    return ""


@kinds.tested(
    _as_seven,
    "Three bits a, b, c have the sum a ^ b ^ c, and a carry where two of them are ones.",
    "Two adders leave two carries and a sum; a third adder takes the sum in; then add up carries.",
)
def challenge_seven(words, count):
    """Carries count 2 and 4. Adders spare four counts, not always time: see the first chart."""

    def adder(a, b, c):
        return a ^ b ^ c, (a & b) | ((a ^ b) & c)

    a, b, c, d, e, f, g = words
    first, twos_1 = adder(a, b, c)
    second, twos_2 = adder(d, e, f)
    one, twos_3 = adder(first, second, g)
    two, four = adder(twos_1, twos_2, twos_3)
    return count(one) + 2 * count(two) + 4 * count(four)


def ones(words: np.ndarray) -> int:
    """The number of ones in an array of words."""
    return int(np.bitwise_count(words).sum())
