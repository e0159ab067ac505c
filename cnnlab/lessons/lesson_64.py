"""The exercises of lesson 64, its charts, and a tuner's first trials, step by step."""

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.measure.timing import mean_interval as interval
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, figure, label_ends, style

LINES = *map(COLORS.get, ("vector", "device", "threads")), INK, GREY, COLORS["loops"]
LINES += "#cc79a7", "#8c564b"


def spread(values: Sequence[float]) -> str:
    """The mean of twenty and its 95 % interval, as text."""
    return "{:.1f} ± {:.1f}".format(*interval(values))


# --- pictures -------------------------------------------------------------------------------------


@figure
def landscape(rates: Mapping[str, Sequence[float]]) -> Axes:
    """Draw all schedules of each layer, the best first, in % of the best, and a line at 95 %."""
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    ends = []
    for (name, values), color in zip(rates.items(), LINES, strict=False):
        good = sorted((rate for rate in values if rate), reverse=True)
        shares = [100 * rate / good[0] for rate in good]
        ax.plot(range(1, len(good) + 1), shares, "o-", color=color, lw=1.3, ms=2.5)
        ends.append((len(good), shares[-1], name, color))
    ax.axhline(95, color="black", ls="--", lw=1)
    ax.annotate("95 %", (250, 95), (0, 3), textcoords="offset points", fontsize=9)
    ax.set(xscale="log", xlabel="schedules, the fastest first", ylabel="% of the layer's best")
    ax.xaxis.set_major_formatter("{x:g}")
    label_ends(ax, ends)
    return ax


def _grid(ax: Axes, shares: Mapping[tuple, float]) -> dict[tuple, tuple]:
    """Draw the best share, in %, of each (filters, vectors, lanes); where each of them lies."""
    filters, vectors, lanes = (sorted({key[i] for key in shares}) for i in range(3))
    columns = [(v, n) for n in lanes for v in vectors]
    image = [[shares[f, v, n] for v, n in columns] for f in filters]
    ax.imshow(image, cmap="Blues", vmin=0, vmax=130, aspect="auto")
    ax.set_xticks(range(len(columns)), [f"{v}×{n}" for v, n in columns], fontsize=8)
    ax.set_yticks(range(len(filters)), map(str, filters))
    ax.set(xlabel="vectors × lanes", ylabel="filters")
    ax.grid(visible=False)
    return {(f, v, n): (columns.index((v, n)), filters.index(f)) for f, v, n in shares}


@figure
def tiles(shares: Mapping[tuple, float], fits: Sequence[tuple]) -> Axes:
    """Draw for each tile its best share of the peak, in %, and a frame around those that fit."""
    _, ax = plt.subplots(figsize=(7.2, 2.6))
    for tile, (x, y) in _grid(ax, shares).items():
        text = f"{shares[tile]:.0f}" if shares[tile] else "–"
        ax.text(x, y, text, ha="center", va="center", fontsize=9)
        if tile in fits:
            ax.add_patch(plt.Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False, ec=INK))
    return ax


def trials(shares: Mapping[tuple, float], asked: Sequence[tuple], rates) -> Stepper:
    """Step through a tuner's trials, two at a time, on the map of tiles; rates are shares in %."""
    frames, captions = [], []
    for n in range(2, len(asked) + 1, 2):
        with style():
            ax = Figure((5.2, 2.2), layout="tight").subplots()
        places = _grid(ax, shares)
        for i, schedule in enumerate(asked[:n]):
            x, y = places[tuple(schedule[:3])]
            color = COLORS["device"] if i >= n - 2 else INK
            ax.plot(x + 0.2 * (i % 3 - 1), y, "o", color=color, ms=6, mec="white")
        last = " and ".join(f"{rate:.0f} %" if rate else "failed" for rate in rates[n - 2 : n])
        captions.append(f"Trials: {n}. The last: {last}. The best so far: {max(rates[:n]):.0f} %.")
        frames.append(ax.figure)
    return stepper(
        frames, title="Trials, the last two in orange; rates in % of the best", captions=captions
    )


@figure
def curves(best: Mapping[str, Sequence[float]]) -> Axes:
    """Draw the best so far, in % of the table's optimum, over trials."""
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    ends = []
    for (name, values), color in zip(best.items(), LINES, strict=True):
        ax.plot(range(1, len(values) + 1), values, color=color, lw=1.5)
        ends.append((len(values), values[-1], name, color))
    ax.axhline(95, color="black", ls="--", lw=1)
    ax.annotate("95 %", (1, 95), (0, 3), textcoords="offset points", fontsize=9)
    ax.set(xscale="log", xlabel="trials", ylabel="% of the optimum")
    ax.xaxis.set_major_formatter("{x:g}")
    label_ends(ax, ends)
    return ax


@figure
def beside(shares: Mapping[str, Sequence[float]], layers: Sequence[str]) -> Axes:
    """Draw bars of shares of the optimum, in %, for each layer and each way to a schedule."""
    _, ax = plt.subplots(figsize=(7.2, 2.9))
    width = 0.8 / len(shares)
    for k, ((name, values), color) in enumerate(zip(shares.items(), LINES, strict=False)):
        at = np.arange(len(layers)) + (k - (len(shares) - 1) / 2) * width
        ax.bar(at, values, 0.9 * width, color=color, label=name)
    ax.axhline(100, color="black", ls="--", lw=1)
    ax.set_xticks(range(len(layers)), layers)
    ax.set(ylabel="% of the optimum", ylim=(0, 125))
    ax.legend(ncols=len(shares), fontsize=8, frameon=False, loc="upper center")
    return ax


# --- the exercises --------------------------------------------------------------------------------


@kinds.formula(
    lambda rng: {
        "schedules": int(rng.integers(200, 500)),
        "good": int(rng.integers(2, 9)),
        "trials": int(rng.integers(9, 60)),
    },
    "The first draw misses with chance (schedules − good) / schedules. And the second, after it?",
    "Or count: how many sets of that many trials are there, and how many without a good one?",
)
def chance_of_none(schedules, good, trials):
    """Of 100 random searches, 48 trials each, 70 miss all of three good ones among 432."""
    return math.comb(schedules - good, trials) / math.comb(schedules, trials)


def _as_neighbours(near) -> str:
    knobs = {"a": (1, 2, 4, 8), "b": (4, 8, 16), "order": ("x", "y", "z"), "one": (3,)}
    for schedule in ((1, 8, "y", 3), (8, 16, "x", 3), (2, 4, "z", 3)):
        got = near(schedule, {k: tuple(v) for k, v in knobs.items()})
        if not isinstance(got, list) or not all(isinstance(each, tuple) for each in got):
            return "expected a list of tuples"
        expected = neighbours.model()(schedule, knobs)
        if len(got) != len(set(got)):
            return f"{schedule}: a neighbour stands there twice"
        if schedule in got:
            return f"{schedule} is no neighbour of its own"
        if missing := sorted(set(expected) - set(got), key=str):
            return f"{schedule}: {missing[0]} is missing"
        if more := sorted(set(got) - set(expected), key=str):
            return f"{schedule}: {more[0]} is no neighbour"
    return ""


@kinds.tested(
    _as_neighbours,
    "Which values lie before and after this one in its tuple? At the ends there is one.",
    "An order of loops has no more or less: all its other values are one step away.",
)
def neighbours(schedule, knobs):
    """Numbers have an order, names have none: what a knob means belongs in the search."""
    result = []
    for i, (value, values) in enumerate(zip(schedule, knobs.values(), strict=True)):
        at = values.index(value)
        near = values[max(at - 1, 0) : at + 2] if not isinstance(value, str) else values
        result += [(*schedule[:i], each, *schedule[i + 1 :]) for each in near if each != value]
    return result


@kinds.labels(
    ["sound", "own history", "winner's curse", "failures forgotten", "one seed"],
    [
        "whose records are those?",
        "is a minimum of noisy numbers an estimate?",
        "what does a trial that fails cost?",
        "how much of 1.4 times is luck?",
        "is anything wrong with it?",
    ],
    "What does each compare with what, and is either side favoured?",
    "One of the five is sound.",
)
def diagnosis():
    """Its own records; the luckiest of 400; failures cost trials; a single seed; this is sound."""
    return ["own history", "winner's curse", "failures forgotten", "one seed", "sound"]


def _as_climber(tuner) -> str:
    knobs = {"a": tuple(range(12)), "b": tuple(range(12))}
    every = list(itertools.product(*knobs.values()))

    def rate(schedule, peak):
        a, b = schedule
        return 100 - abs(a - peak[0]) - abs(b - peak[1]) + Fraction(a + 12 * b, 1000)

    for seed, peak in enumerate(((2, 9), (11, 0), (6, 6))):
        asked, climber = [], tuner(knobs, np.random.default_rng(seed))
        schedule = next(climber, None)
        while schedule is not None:
            if schedule not in every:
                return f"{schedule!r} is no schedule"
            if schedule in asked:
                return f"{schedule} is asked for twice"
            asked.append(schedule)
            try:
                schedule = climber.send(rate(schedule, peak))
            except StopIteration:
                schedule = None
        if len(asked) < 144:
            return f"stops after {len(asked)} of 144 schedules: begin anew somewhere"
        if (first := asked.index(peak) + 1) > 60:
            return f"a hill with one top is climbed in {first} trials, and 60 are enough"
    return ""


@kinds.tested(
    _as_climber,
    "Ask for the untried neighbours of the best so far; move as soon as one is better.",
    "Where all neighbours of the best are tried, go on from any schedule that is left.",
)
def challenge_climber(knobs, rng):
    """Whatever lies nearest to the best so far: neighbours first if values are one apart (for 1, 2,
    4, 8 take the distance between places in the tuple), and in the end all."""
    left, rates = list(itertools.product(*knobs.values())), {}
    rng.shuffle(left)
    while left:
        best = max(rates, key=rates.get, default=left[0])
        chosen = min(left, key=lambda s: sum(abs(a - b) for a, b in zip(s, best, strict=True)))
        left.remove(chosen)
        rates[chosen] = yield chosen
