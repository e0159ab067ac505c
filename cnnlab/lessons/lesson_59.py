"""What lesson 59 alone needs: its exercises, its drawings, and seven claims that mislead."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from cnnlab.check import kinds
from cnnlab.measure import planner
from cnnlab.plots.style import GREY, INK, OTHERS, as_rows, colors, figure, label_ends

LIES = (
    "best of many", "bytes for time", "dropped failures", "extrapolation", "one seed",
    "part for the whole", "time without accuracy", "weak base", "weak for strong scaling",
)  # fmt: skip
ASKS = (
    "what does one rank take that needs no other?",
    "why does one train?",
    "how many images did each number of ranks have in a step?",
    "what does the reader want to have less of?",
    "how often was it run?",
    "what else does a rank hold?",
    "which of these bars has anybody played or run?",
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
    "For each ask: compared with what, at which size, and what does it leave out?",
    "Each lie but two occurs once: one seed and dropped failures are not among the claims.",
)
def lies():
    """No number was invented."""
    return [
        "weak base",
        "time without accuracy",
        "weak for strong scaling",
        "bytes for time",
        "best of many",
        "part for the whole",
        "extrapolation",
    ]


@kinds.tested(
    as_superstep_model,
    "A superstep ends when the slowest rank has computed and the fullest has its messages.",
    "h is the most that any rank sends or receives: the larger of row sums and column sums.",
)
def superstep_model(steps, latency, bandwidth):
    """max w + g h + L, with 1/bandwidth for g (Valiant 1990): who waits is not a matter of luck."""
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


class Claim(NamedTuple):
    """A sentence, the bars that are shown for it, and what a check of it finds."""

    sentence: str
    bars: Mapping[str, float]
    unit: str
    truth: str


def claims(steps: Mapping, samples: Mapping[str, Sequence[float]], first: Mapping, cost, link: str):
    """Seven of them: from steps by variant, samples of real ones, and the steps to an accuracy."""

    def speedup(p: int, batch: int) -> float:
        one, many = (planner.plan("data", "lenet5", n, batch, link, cost) for n in (1, p))
        return one.seconds / many.seconds

    seen = {variant: 1e3 * float(np.median(times)) for variant, times in samples.items()}
    slow, n, gain = seen["loops"], 2 * 44.426, {p: speedup(p, 32) for p in (2, 4, 16)}
    weak = {f"{p} ranks": 100 * speedup(p, 32 * p) / p for p in (4, 16)}
    line = 1 + (gain[4] - 1) * 15 / 3
    a, b = (1e3 * steps[variant].seconds for variant in ("data", "local"))
    packed, held = "data --compress one_bit", steps["data"].held.max() / steps["sharded"].held.max()
    kilo = [steps[variant].sent.sum(1).max() / 1e3 for variant in ("data", packed)]
    best, ratio = 1e3 * min(samples["data"]), seen[packed] / seen["data"]
    return [
        Claim(f"Two ranks are {slow / seen['data']:.1f} times as fast as one.",
              {"1 rank": slow, "2 ranks": seen["data"]}, "a step, measured ms",
              f"One rank ran other kernels, loops. With vector it takes {seen['alone']:.2g} ms."),
        Claim(f"Local steps train {a / b:.1f} times faster.", {"data": a, "local": b},
              "a step, virtual ms", f"But {first['local'] / first['data']:.2g} times the steps."),
        Claim(f"Sixteen ranks train with {weak['16 ranks']:.0f} % efficiency.", weak,
              "efficiency, %", f"The batch grew. 32 images for all: {100 * gain[16] / 16:.0f} %."),
        Claim(f"One bit a number makes communication {kilo[0] / kilo[1]:.0f} times cheaper.",
              {"data": kilo[0], "one bit": kilo[1]}, "kB that a rank sends in a step",
              f"On two ranks here, a step takes {ratio:.2f} times as long as with all bits."),
        Claim(f"Two ranks take {best:.2f} ms a step.", {"2 ranks": best}, "a step, measured ms",
              f"The fastest of {len(samples['data'])}; the median is {seen['data']:.2f} ms."),
        Claim("Sharded on 4 ranks, training needs 4 times less memory.",
              {"data": n, "sharded": n / 4}, "thousand numbers: parameters and gradients",
              f"With activations and a whole layer at its turn: {held:.1f} times."),
        Claim(f"With 16 ranks we shall be {line:.1f} times as fast.",
              {"2 ranks": gain[2], "4 ranks": gain[4], "16 ranks": line}, "speedup",
              f"Nobody played 16, but drew a line on from 4. Played, it is {gain[16]:.1f}."),
    ]  # fmt: skip


def tell(shown: Sequence[Claim], named: Sequence) -> None:
    """Print what a check of each claim finds, if `named` has a word for it, not `...`."""
    for number, (one, word) in enumerate(zip(shown, named, strict=True), 1):
        print(f"{number} {'first name its lie' if word is ... else one.truth}")


@figure
def draw_claims(shown: Sequence[Claim]):
    """Draw claims with the bars that are shown for them, numbered, two in a row."""
    _, axes = plt.subplots(-(-len(shown) // 2), 2, figsize=(8, 7))
    axes.flat[-1].axis("off")
    for k, (ax, one) in enumerate(zip(axes.flat, shown, strict=False)):
        bars = ax.barh(list(one.bars), list(one.bars.values()), color=OTHERS[k], height=0.6)
        ax.bar_label(bars, fmt=" {:.3g}", fontsize=9)
        ax.margins(x=0.2)
        ax.set_xlabel(one.unit, fontsize=9)
        ax.set_title(textwrap.fill(f"{k + 1}  {one.sentence}", 44), fontsize=10, loc="left")
        as_rows(ax, list(one.bars))
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
def draw_over_bandwidth(bandwidths: Sequence[float], seconds: Mapping[str, Sequence[float]]):
    """Draw seconds over the bandwidth of links, fast ones first; those that win have a colour."""
    _, ax = plt.subplots(figsize=(8, 5))
    mega, best = np.array(bandwidths) / 1e6, np.array(list(seconds.values())).argmin(0)
    winners = [name for k, name in enumerate(seconds) if k in best]
    color = dict.fromkeys(seconds, GREY) | dict(zip(winners, colors(winners), strict=True))
    for name, values in seconds.items():
        ax.plot(
            mega, values, "o-", markersize=4, color=color[name], linewidth=1 + (name in winners)
        )
    ax.set(xscale="log", yscale="log", xlabel="bandwidth, MB/s: from fast to slow")
    ax.set(ylabel="seconds to the accuracy", xlim=(mega.max(), mega.min()))
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.figure.canvas.draw()  # limits are final now
    last = mega.argmin()
    label_ends(ax, [(mega[last], y[last], name, color[name]) for name, y in seconds.items()])
    return ax
