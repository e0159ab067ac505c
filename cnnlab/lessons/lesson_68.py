"""The exercises of lesson 68, its charts, and two arrays to step through."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, as_rows, colors, figure, label_ends, style

STAYS = "output", "weight", "input"


def cycles(M, K, N, stays, R, C):
    """Cycles of x (M,K) times w (K,N) on R × C elements, tile after tile."""
    sizes = {"output": (M, N, K), "weight": (K, N, M), "input": (K, M, N)}
    rows, columns, steps = sizes[stays]
    return -(-rows // R) * -(-columns // C) * (2 * R + C + steps - 2)


# --- pictures -------------------------------------------------------------------------------------


def steps(arrays: Mapping[str, Sequence[dict]]) -> Stepper:
    """Step through arrays side by side: what each cycle leaves on wires and in registers."""
    frames, captions = [], []
    for k in range(max(map(len, arrays.values()))):
        with style():
            page = Figure((3.3 * len(arrays), 2.9))
            axes = page.subplots(1, len(arrays))
        words = []
        for ax, (name, states) in zip(axes, arrays.items(), strict=True):
            state = states[min(k, len(states) - 1)]
            busy = elements(ax, state)
            ax.set_title(name, fontsize=9, loc="left")
            words.append(f"{name}: {state['phase']}, {busy} busy")
        frames.append(page)
        captions.append(f"Cycle {k + 1}. {'; '.join(words)}.")
    return stepper(frames, title="Numbers move, one element a cycle", captions=captions)


def elements(ax: Axes, state: dict) -> int:
    """One array: in each element what stays, at its left and upper edge what came; how many work."""
    stays, right, down = (state[name] for name in ("stays", "right", "down"))
    R, C = stays.shape
    working = np.isfinite(right) & np.isfinite(down)
    ax.set(xlim=(-0.15, C), ylim=(R, -0.15), aspect="equal")
    ax.axis("off")
    for i, j in np.ndindex(R, C):
        look = {"fc": "#cfe3f3" if working[i, j] else "#f4f4f4", "ec": GREY, "lw": 0.8}
        ax.add_patch(plt.Rectangle((j + 0.04, i + 0.04), 0.92, 0.92, **look))
        ax.text(j + 0.62, i + 0.62, f"{stays[i, j]:g}", ha="center", va="center", color=INK)
        for number, at, color in (
            (right[i, j], (j + 0.2, i + 0.62), COLORS["device"]),
            (down[i, j], (j + 0.62, i + 0.22), COLORS["vector"]),
        ):
            if np.isfinite(number):
                ax.text(*at, f"{number:g}", ha="center", va="center", color=color, fontsize=8)
    return int(working.sum())


@figure
def utilisation(series: Mapping[str, Sequence[float]], sides: Sequence[int]) -> Axes:
    """Draw, for each layer, the share of all elements that work, over the side of the array."""
    _, ax = plt.subplots(figsize=(7.2, 3.6))
    ax.set(xscale="log", yscale="log", xlabel="side of the array", ylabel="% of elements at work")
    ax.set_xscale("log", base=2)
    names = list(series)
    for name, color in zip(names, colors(names), strict=True):
        ax.plot(sides, series[name], "o-", color=color, ms=4)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.autoscale_view()  # limits are final now
    ends = zip(names, colors(names), strict=True)
    label_ends(ax, [(sides[-1], series[name][-1], name, color) for name, color in ends])
    return ax


# --- the exercises --------------------------------------------------------------------------------


def _as_feed(build) -> str:
    rng = kinds.generator()
    for size, K, lanes in ((4, 2, 1), (6, 3, 4), (9, 5, 7)):
        image = rng.random((size, size))
        places = [tuple(map(int, rng.integers(0, size - K + 1, 2))) for _ in range(lanes)]
        got = np.asarray(build(image.copy(), K, list(places)), float)
        expected = straight_feed.model()(image, K, places)
        if got.shape != expected.shape:
            return f"{lanes} windows of {K} × {K}: expected {expected.shape}, got {got.shape}"
        wrong = ~np.isclose(got, expected, equal_nan=True)
        if wrong.any():
            t, lane = (int(n[0]) for n in np.nonzero(wrong))
            what = f"expected {expected[t, lane]:.3g}, got {got[t, lane]:.3g}"
            return f"{lanes} windows of {K} × {K}: cycle {t}, lane {lane}: {what}"
    return ""


@kinds.tested(
    _as_feed,
    "How many numbers does a lane get, and how many cycles later than lane 0?",
    "Tap (k, l) of lane m enters in cycle m + K k + l. Everything else is NaN.",
)
def straight_feed(image, K, places):
    """No matrix of windows was built: the feed reads the image K² times a pixel, in time."""
    result = np.full((K * K + len(places) - 1, len(places)), np.nan)
    for lane, (p, q) in enumerate(places):
        result[lane : lane + K * K, lane] = image[p : p + K, q : q + K].ravel()
    return result


@kinds.formula(
    lambda rng: {
        "R": int(rng.integers(1, 65)),
        "C": int(rng.integers(1, 65)),
        "steps": int(rng.integers(1, 129)),
        "tiles": int(rng.integers(1, 9)),
    },
    "When may the next stream enter the first lane? It waits for two things.",
    "A tile follows the one before it after max(steps, R) cycles; fill and empty are paid once.",
)
def without_gaps(R, C, steps, tiles):
    """Loading hides behind streaming, as long as a stream is no shorter than R."""
    return R + (tiles - 1) * max(steps, R) + steps + R + C - 2


@kinds.labels(
    ["sound", "drain forgotten", "no skew", "rounded down", "zeros counted"],
    [
        "when has the last result left the array?",
        "which x should meet w[0, 0] there?",
        "how many tiles are six rows?",
        "how many of the multiply-adds are of the product?",
        "does the second product wait for the first?",
    ],
    "Work out each number for 4 × 4 elements from the formula.",
    "One is sound. What is 2 R + C + K − 2?",
)
def diagnosis():
    """20 − 4; x[1, 0] is gone by then; two tiles, 40 cycles; 90 of 320; twice 20."""
    return ["drain forgotten", "no skew", "rounded down", "zeros counted", "sound"]


def fewest(products, R, C):
    """Cycles of all products, each in its best dataflow."""
    return sum(min(cycles(*sizes, stays, R, C) for stays in STAYS) for sizes in products)


def _as_shape(choose) -> str:
    rng = kinds.generator()
    for n in (16, 100, 256):
        products = [tuple(map(int, rng.integers(1, most, 3))) for most in (600, 200, 60)]
        R, C = choose(list(products), n)
        if R * C > n or min(R, C) < 1:
            return f"{R} × {C} are not between 1 and {n} elements"
        best = min(fewest(products, r, n // r) for r in range(1, n + 1))
        if fewest(products, R, C) > best:
            got = f"{R} × {C} take {fewest(products, R, C):,} cycles, and {best:,} are enough"
            return f"{products}, {n} elements: {got}"
    return ""


@kinds.tested(
    _as_shape,
    "How many shapes are there at all? Each number of rows leaves one number of columns.",
    "For each R, C = n // R; for each product, the dataflow that takes fewest cycles.",
)
def challenge_shape(products, n):
    """A search over all shapes: the array fits the layers, and seldom is a square."""
    shapes = [(R, n // R) for R in range(1, n + 1)]
    return min(
        shapes,
        key=lambda shape: sum(
            min(cycles(*sizes, stays, *shape) for stays in STAYS) for sizes in products
        ),
    )
