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
PARTS = {"multiplier": COLORS["vector"], "adder": COLORS["loops"], "registers": GREY}
KINDS = COLORS["vector"], COLORS["device"]  # of convolutions and pooling, and of dense layers
ROOFS = "k-", "k--", "k:"
NAMED = "report, pool", "report, dense", "eight, conv1", "lenet5, dense1", "lenet5, conv2"


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
            page = Figure((3.2 * len(arrays), 3.5), layout="none")
        words = []
        for n, (name, states) in enumerate(arrays.items()):
            at = n / len(arrays), 0.01, 1 / len(arrays), 0.92
            ax, t = page.add_axes(at, aspect="equal"), min(k, len(states) - 1)
            ax.set_title(f"{name}, {states[t]['phase']}", fontsize=9, antialiased=False)
            ax.axis("off")
            edges(ax, states, t)
            words.append(f"{name}: {elements(ax, states[t])} of {states[t]['stays'].size} work")
        frames.append(page)
        captions.append(f"Cycle {k + 1}. {'; '.join(words)}.")
    return stepper(frames, title="Numbers move, one element a cycle", captions=captions)


def number(ax: Axes, value: float, x: float, y: float, color: str) -> None:
    """Write a number, unless it is NaN, in pure colours: a stepper's image has few."""
    if np.isfinite(value):
        look = {"ha": "center", "va": "center", "weight": "bold", "antialiased": False}
        ax.text(x, y, f"{value:g}", color=color, fontsize=9, **look)


def elements(ax: Axes, state: dict) -> int:
    """Draw what stays and what has come in each element; return how many work."""
    stays, right, down = (state[name] for name in ("stays", "right", "down"))
    working = np.isfinite(right) & np.isfinite(down)
    for i, j in np.ndindex(stays.shape):
        look = {"fc": "#d5e3ef" if working[i, j] else "white", "ec": INK, "lw": 0.8, "aa": False}
        ax.add_patch(plt.Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, **look))
        number(ax, stays[i, j], j + 0.64, i + 0.66, INK)
        number(ax, right[i, j], j + 0.22, i + 0.66, COLORS["device"])
        number(ax, down[i, j], j + 0.64, i + 0.25, COLORS["vector"])
    return int(working.sum())


def edges(ax: Axes, states: Sequence[dict], t: int) -> None:
    """What will enter at the left and above, and below what has left; the nearer, the sooner."""
    R, C = states[t]["stays"].shape
    ax.set(xlim=(-1.6, C), ylim=(R + 1.45, -1.45))
    loads = states[0]["phase"] == "load"  # then weights come from above, and sums leave below
    for d, state in enumerate(states[t + 1 : t + 4], 1):
        for i in range(R):
            number(ax, state["right"][i, 0], 0.25 - d / 2, i + 0.66, COLORS["device"])
        above = state["stays"] if state["phase"] == "load" else state["down"]
        for j in range(C if state["phase"] == "load" or not loads else 0):
            number(ax, above[0, j], j + 0.64, 0.25 - d / 2, INK if loads else COLORS["vector"])
    for d in range(min(3, t)):
        now, before = states[t - d], states[t - d - 1]
        left, color = (before["down"], COLORS["vector"]) if loads else (before["stays"], INK)
        for j in range(C if loads or now["phase"] == "drain" else 0):
            number(ax, left[-1, j], j + 0.64, R + 0.25 + d / 2, color)


@figure
def curves(series: Mapping[str, Sequence[float]], at: Sequence, xlabel: str, ylabel: str) -> Axes:
    """Draw a line for each name over `at`, in its order, with its name at the end."""
    _, ax = plt.subplots(figsize=(7.2, 3.3))
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    labels = []
    for (name, line), color in zip(series.items(), colors(list(series)), strict=True):
        ax.plot(at, line, marker="o", color=color, ms=4, ls="--" if name == "ideal" else "-")
        labels.append((at[-1], line[-1], name, color))
    ax.set_xticks(at, [f"{each:g}" for each in at])
    ax.xaxis.minorticks_off()
    ax.yaxis.set_major_formatter("{x:g}")
    if at[0] > at[-1]:
        ax.invert_xaxis()
    ax.autoscale_view()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def areas(cells: Mapping[str, tuple[float, float, float]]) -> Axes:
    """Draw what an element of each kind is made of, in full adders."""
    _, ax = plt.subplots(figsize=(7.2, 0.4 * len(cells) + 1.1))
    left, parts = np.zeros(len(cells)), zip(*cells.values(), strict=True)
    for (part, color), sizes in zip(PARTS.items(), parts, strict=True):
        ax.barh(list(cells), sizes, left=left, height=0.6, color=color, label=part)
        left += sizes
    for name, end in zip(cells, left, strict=True):
        ax.text(end, name, f"  {end:g}", va="center", fontsize=9)
    ax.set_xlabel("full adders")
    ax.margins(x=0.1)
    ax.legend(loc="lower right", frameon=False, fontsize=9)
    return as_rows(ax, list(cells))


@figure
def roofs(points: Mapping[str, tuple], chips: Mapping[str, tuple], shapes: Sequence[str]) -> Axes:
    """Draw the roof of each chip, and each layer's speed on arrays of several shapes."""
    _, ax = plt.subplots(figsize=(7.2, 4.4))
    ax.set(xscale="log", yscale="log", xlabel="FLOP a byte", ylabel="TFLOP/s", ylim=(0.001, 16))
    at = np.geomspace(0.3, 100, 200)
    for (name, (peak, bandwidth)), look in zip(chips.items(), ROOFS, strict=True):
        ax.plot(at, np.minimum(peak, bandwidth * at) / 1e12, look, label=f"roof of {name}")
    for name, (x, speeds, _) in points.items():
        color = KINDS["dense" in name]
        for speed, marker in zip(speeds, "s^o", strict=True):
            face = "white" if marker == "s" else color
            ax.plot(x, speed / 1e12, marker, color=color, mfc=face, ms=5)
        if name in NAMED:
            ax.plot([x, x], [0.018, max(speeds) / 1e12], color=GREY, lw=0.6, zorder=1)
            ax.text(x, 0.016, name, color=color, fontsize=8, rotation=90, ha="center", va="top")
    for shape, marker in zip(shapes, "s^o", strict=True):
        look = {"color": GREY, "mfc": "white" if marker == "s" else GREY, "ls": ""}
        ax.plot([], [], marker=marker, label=shape, **look)
    for kind, color in zip(("convolution, pooling", "dense"), KINDS, strict=True):
        ax.plot([], [], color=color, lw=5, label=kind)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
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
    """No matrix of windows was built: a pixel is fed up to K² times, spread over the cycles."""
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
    "Tiles follow each other after max(steps, R) cycles. Filling and emptying is paid once.",
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
        "which lanes does the control leave out?",
    ],
    "Work out each number for 4 × 4 elements from the formula.",
    "Two are sound. What is 2 R + C + K − 2?",
)
def diagnosis():
    """20 − 4; x[1, 0] is gone by then; two tiles, 40 cycles; 90 of 320; twice 20; 20 again."""
    return ["drain forgotten", "no skew", "rounded down", "zeros counted", "sound", "sound"]


def fewest(products, R, C):
    """Cycles of all products, each in its best dataflow."""
    return sum(min(cycles(*sizes, stays, R, C) for stays in STAYS) for sizes in products)


def _as_shape(choose) -> str:
    rng = kinds.generator()
    for n, high in ((16, (600, 200, 60)), (60, (200, 100, 30)), (300, (40, 20, 6))):
        products = [tuple(map(int, rng.integers(1, high))) for _ in range(3)]
        R, C = choose(list(products), n)
        if R * C > n or min(R, C) < 1:
            return f"{R} × {C} are not between 1 and {n} elements"
        best = fewest(products, *challenge_shape.model()(products, n))
        if fewest(products, R, C) > best:
            got = f"{R} × {C} take {fewest(products, R, C):,} cycles, and {best:,} are enough"
            return f"{products}, {n} elements: {got}"
    return ""


@kinds.tested(
    _as_shape,
    "How many shapes are there at all? A narrow array need not use all n elements.",
    "Try all R and C with R · C ≤ n; for each product, the dataflow that takes fewest cycles.",
)
def challenge_shape(products, n):
    """A search over all shapes: columns that no tile fills only cost."""
    flows = "output", "weight", "input"

    def total(shape):
        return sum(min(cycles(*sizes, stays, *shape) for stays in flows) for sizes in products)

    return min(((R, C) for R in range(1, n + 1) for C in range(1, n // R + 1)), key=total)
