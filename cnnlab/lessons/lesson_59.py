"""What lesson 59 alone needs: its exercises and its drawings."""

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from cnnlab.check import kinds
from cnnlab.measure import planner
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import INK, OTHERS, as_rows, colors, figure

LIES = (
    "accuracy ignored", "training accuracy", "tuning left out", "outdated base", "kernels only",
    "input left out", "highest rate", "two sets of options", "large inputs", "right moment",
    "weak for strong scaling", "chosen rival",
)  # fmt: skip
ASKS = (
    "what would one rank take?",
    "why does one train?",
    "how often was it run?",
    "how many trainings does the page have?",
    "what else does a step take?",
    "how does it go on?",
    "who would still run this code?",
    "how many images did each number of ranks have in a step?",
    "which images are these?",
    "where do the images come from?",
    "do both numbers come from one training?",
)


def as_superstep_model(seconds) -> str:
    """What is wrong with a function for the time of supersteps; nothing if it is right."""
    rng = kinds.generator()
    for p in rng.integers(2, 6, kinds.FRESH):
        sent = rng.integers(0, 9, (3, p, p)) * 1000 * (1 - np.eye(p, dtype=int))
        steps = list(zip(rng.uniform(0, 1e-3, (3, p)), sent, strict=True))
        where = float(rng.uniform(1e-6, 1e-4)), float(rng.uniform(1e6, 1e8))
        got, right = seconds(steps, *where), superstep_model.model()(steps, *where)
        if not np.isclose(got, right):
            return f"{steps[:1]} …, latency and bandwidth {where}: expected {right:.4g}, got {got}"
    return ""


def as_forecast(forecast) -> str:
    """What is wrong with an extrapolation, in words; nothing if it is right."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        a, b, c = rng.uniform(0.1, 2, 3)
        at = {p: float(a + b / p + c * np.log2(p)) for p in (2, 4, 8, 16, 64)}
        right = at.pop(64)
        got = forecast(list(at), list(at.values()), 64)
        if not np.isclose(got, right, rtol=1e-6):
            return f"{a:.2f} + {b:.2f}/P + {c:.2f} log2 P at 64: expected {right:.4f}, got {got}"
    return ""


def as_times_faster(ratio) -> str:
    """What is wrong with a speedup in time to accuracy, in words; nothing if it is right."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        pair = []
        for heights in np.sort(rng.uniform(0.1, 0.95, (2, 5))):
            steps = np.cumsum(rng.integers(20, 200, 5))
            pair.append((float(rng.uniform(0.001, 0.01)), list(zip(steps, heights, strict=True))))
        pair[0][1][-1] = pair[0][1][-1][0], 0.1  # a training can forget
        for target in (0.3, 0.6, 0.9, pair[0][1][2][1], pair[1][1][2][1]):
            got, right = ratio(*pair, target), times_faster.model()(*pair, target)
            if (got is None) != (right is None) or (right and not np.isclose(got, right)):
                return f"of {pair[0]} and {pair[1]} at {target}: expected {right}, got {got}"
    return ""


@kinds.labels(
    LIES,
    ASKS,
    "For each ask: compared with what, at which moment, and what does it leave out?",
    "Each of the twelve occurs at most once; large inputs do not: all images have 28 × 28 pixels.",
)
def lies():
    """No number was invented."""
    return [
        "chosen rival",
        "accuracy ignored",
        "highest rate",
        "tuning left out",
        "kernels only",
        "right moment",
        "outdated base",
        "weak for strong scaling",
        "training accuracy",
        "input left out",
        "two sets of options",
    ]


@kinds.tested(
    as_superstep_model,
    "A superstep ends when the slowest rank has computed and the fullest has its messages.",
    "h is the most that any rank sends or receives: the larger of row sums and column sums.",
)
def superstep_model(steps, latency, bandwidth):
    """max w + g h + L, with 1/bandwidth for g (Valiant 1990): one slow rank holds up all."""
    total = 0.0
    for compute, sent in steps:
        h = max(sent.sum(0).max(), sent.sum(1).max())
        total += max(compute) + h / bandwidth + latency
    return total


@kinds.tested(
    as_forecast,
    "Three unknown numbers, four equations that are linear in them.",
    "np.linalg.lstsq of a matrix with the columns 1, 1/P and log2 P.",
)
def forecast(ranks, seconds, n_ranks):
    """The terms say how it goes on; a term that is missing is missing in the forecast, too."""

    def terms(p):
        p = np.asarray(p, float)
        return np.stack([np.ones_like(p), 1 / p, np.log2(p)], axis=-1)

    weights, *_ = np.linalg.lstsq(terms(ranks), np.array(seconds), rcond=None)
    return float(terms(n_ranks) @ weights)


@kinds.tested(
    as_times_faster,
    "How many steps does each need until an accuracy of at least the target is seen?",
    "Time is steps times seconds a step; None if one of them never gets there.",
)
def times_faster(base, other, target):
    """What counts is the product of steps and their time; without an end there is no ratio."""
    times = []
    for seconds, curve in (base, other):
        times.append(seconds * next((n for n, accuracy in curve if accuracy >= target), np.inf))
    return None if np.inf in times else times[0] / times[1]


def challenge(variant: str, link: str, batch: int) -> float | None:
    """Hold an extrapolation to 32 ranks against a play on 32; by how much it is off."""
    if ... in (variant, link, batch):
        print("challenge: not yet answered")
        return None
    where = variant, "lenet5", 32, batch, link
    guessed, played = planner.plan(*where), planner.counted(*where, planner.modelled)
    off = guessed.seconds / played.seconds - 1
    both = f"{1e3 * guessed.seconds:.2f} ms extrapolated, {1e3 * played.seconds:.2f} ms played"
    print(f"{both}: {off:+.0%}")
    return off


# A claim has a sentence, bars that are shown for it, their unit, and what a check of it finds.
Claim = tuple[str, Mapping[str, float], str, str]


@figure
def draw_claims(shown: Sequence[Claim]):
    """Draw claims with the bars that are shown for them, numbered, two in a row."""
    _, axes = plt.subplots(-(-len(shown) // 2), 2, figsize=(8, 10))
    axes.flat[-1].axis("off")
    for k, (ax, (sentence, values, unit, _)) in enumerate(zip(axes.flat, shown, strict=False)):
        color = OTHERS[k % len(OTHERS)]
        bars = ax.barh(list(values), list(values.values()), color=color, height=0.6)
        ax.bar_label(bars, fmt=" {:.3g}", fontsize=9)
        ax.margins(x=0.2)
        ax.set_xlabel(unit, fontsize=9)
        ax.set_title(textwrap.fill(f"{k + 1}  {sentence}", 44), fontsize=10, loc="left")
        as_rows(ax, list(values))
    return axes


@figure
def draw_rows(rows: Mapping[str, Sequence[float]], parts: Sequence[str], unit: str, bound: float):
    """Draw a bar for each row, in parts, the shortest first; and a line at a bound."""
    names = sorted(rows, key=lambda name: sum(rows[name]))
    _, ax = plt.subplots(figsize=(8, 4.5))
    left = np.zeros(len(names))
    for k, part in enumerate(parts):
        values = [rows[name][k] for name in names]
        ax.barh(names, values, left=left, label=part, height=0.7, color=OTHERS[3 * k])
        left += values
    ax.axvline(bound, color=INK, linestyle="--", linewidth=1.2)
    ax.set_xlabel(unit)
    ax.legend(loc="upper right")
    return as_rows(ax, names)


@figure
def draw_errors(errors: Mapping[str, Sequence[float]], parts: Sequence[str]):
    """Draw the relative errors of each variant's plans, a bar for each of the parts."""
    names = sorted(errors, key=lambda name: abs(errors[name][-1]))
    _, ax = plt.subplots(figsize=(8, 4.5))
    for k, part in enumerate(parts):
        where = np.arange(len(names)) + (k - 0.5) * 0.36
        values = [100 * errors[name][k] for name in names]
        ax.barh(where, values, 0.34, label=part, color=OTHERS[3 * k])
    ax.axvline(0, color=INK, linewidth=1.2)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("planned less measured, % of measured")
    as_rows(ax, names)
    ax.set_ylim(len(names) + 1.4, -0.5)  # room for the legend
    ax.legend(loc="lower left")
    return ax


@figure
def draw_winners(links: Sequence[tuple], seconds: Mapping[str, Sequence], sure: Sequence[bool]):
    """Draw the fastest on links of some latencies (µs) and bandwidths; hatched where not sure."""
    _, ax = plt.subplots(figsize=(8, 4))
    rows, columns = (list(dict.fromkeys(places)) for places in zip(*links, strict=True))
    best = [min(seconds, key=lambda name: seconds[name][k]) for k in range(len(links))]
    for k, (name, color) in enumerate(zip(best, colors(best), strict=True)):
        y, x = rows.index(links[k][0]), columns.index(links[k][1])
        look = {"color": color, "alpha": 0.45, "hatch": None if sure[k] else "//"}
        ax.barh(y, 1, 1, x - 0.5, edgecolor="white", linewidth=2, **look)
        text = f"{textwrap.fill(name, 11)}\n{seconds[name][k]:.3f} s"
        ax.text(x, y, text, ha="center", va="center", fontsize=10)
    ax.set(xlabel="bandwidth, MB/s", ylabel="latency, µs", xmargin=0, ymargin=0)
    ax.set_xticks(range(len(columns)), [f"{rate / 1e6:,g}" for rate in columns])
    ax.set_yticks(range(len(rows)), rows)
    return ax


def supersteps(steps: Mapping, latency: float, bandwidth: float) -> Stepper:
    """A step of each method as one superstep: what ranks compute, and send to each other."""
    frames, captions = [], []
    for name, one in steps.items():
        page, (left, right) = plt.subplots(1, 2, figsize=(6, 2.8), layout="constrained")
        ms, kB, ranks = 1e3 * one.computed, one.sent / 1e3, range(len(one.sent))
        left.barh(ranks, ms, color=np.where(ms == ms.max(), OTHERS[1], OTHERS[0]))
        left.set(xlabel="computes, ms", ylabel="rank", yticks=ranks, ylim=(len(ms) - 0.5, -0.5))
        right.imshow(kB, cmap="Blues", vmax=2 * kB.max())
        for (row, column), n in np.ndenumerate(kB):
            right.text(column, row, f"{n:.0f}", ha="center", va="center")
        right.set(xlabel="to rank", ylabel="from rank", title="kB sent", yticks=ranks)
        whole = superstep_model.model()([(one.computed, one.sent)], latency, bandwidth)
        h = max(*kB.sum(0), *kB.sum(1))
        said = f"{name}: the slowest rank computes {ms.max():.2f} ms, h is {h:.0f} kB"
        captions.append(f"{said}; {1e3 * whole:.2f} ms in all, played {1e3 * one.seconds:.2f} ms.")
        frames.append(page)
    return stepper(frames, title="A step as one superstep", captions=captions)
