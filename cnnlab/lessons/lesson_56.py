"""Lesson 56: replicas to train, its pictures, and the exercises."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.data import Dataset
from cnnlab.kernels import KERNELS
from cnnlab.network import NETWORKS
from cnnlab.plots.style import GREY, INK, colors, figure, label_ends, measured
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd


def replica(network: str, images: Dataset, seed: int, batch: int = 16, rate: float = 0.5):
    """One of NETWORKS with parameters from a seed, and the images to train it on: a Replica."""
    params, kernels = NETWORKS[network].parameters(seed), KERNELS["vector"]
    return Replica(kernels, params, images.train_images, images.train_labels, batch, Sgd(rate))


@figure
def lines(curves: Mapping, x: str, y: str, goal: Sequence, bound=None, pale=()) -> Axes:
    """Draw lines over messages or steps, dashed where they should lead, grey a bound around it."""
    _, ax = plt.subplots(figsize=(6.5, 2.7))
    n = np.arange(1, len(goal) + 1)
    if bound is not None:
        ax.fill_between(n, goal - bound, goal + bound, color=GREY, alpha=0.2, linewidth=0)
        ax.plot(n, pale, color=GREY, alpha=0.4, linewidth=0.5)
        ax.set(xscale="log", ylim=(goal[0] - bound[4], goal[0] + bound[4]))
    ends = [(n[-1], goal[-1], "float32", INK)]
    for color, (name, values) in zip(colors(list(curves)), curves.items(), strict=True):
        ax.plot(n, values, color=color, linewidth=1.5)
        ends.append((n[-1], values[-1], name, color))
    ax.plot(n, goal, "--", color=INK, linewidth=1.2)
    ax.set(xlabel=x, ylabel=y)
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


def bars(ax: Axes, title: str, drawn: Mapping[str, np.ndarray]) -> None:
    """Bars of eight numbers side by side for each array: a frame of a stepper."""
    wide = 0.78 / len(drawn)
    for k, ((name, values), color) in enumerate(zip(drawn.items(), colors(drawn), strict=True)):
        ax.bar(np.arange(8) + wide * k, values, 0.95 * wide, color=color, label=name)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set(ylim=(-4.5, 4.5), xticks=[], title=title)
    ax.legend(fontsize=8, loc="lower left", ncols=2)


@figure
def over_noise(line: Sequence, measured: Mapping[str, Sequence]) -> Axes:
    """Draw float32's (noise, text, accuracies) as a line, others' by kind as dots; 95 % bars."""
    _, ax = plt.subplots(figsize=(6.5, 4.2))
    rows = {"float32, batch 3 to 256": line} | measured
    for color, (kind, points) in zip([INK, *colors(measured)], rows.items(), strict=True):
        noise, texts, shares = zip(*points, strict=True)
        mean, half = 100 * np.mean(shares, 1), 278 * np.std(shares, 1, ddof=1) / 5**0.5
        ax.errorbar(noise, mean, half, None, ".-" if color == INK else "o", color=color, label=kind)
        look = {"color": color, "fontsize": 8, "va": "bottom" if "chance" in kind else "top"}
        for at, y, text in zip(noise, mean, texts, strict=True):
            ax.text(at * 1.06, y, text, look)
    ax.set(xscale="log", xlabel="noise, float32's at batch 16 is 1", ylabel="% right")
    ax.axvline(1, color=GREY, linestyle=":")
    ax.legend(fontsize=8)
    return ax


@measured
def sums(rates: Sequence, seen: Mapping, predicted: Mapping, crossings: Mapping) -> Axes:
    """Draw ms of a sum over the bandwidth: lines predicted, dots seen, dotted: it pays below."""
    _, ax = plt.subplots(figsize=(6.5, 3.3))
    ends, x = [], np.array(rates) / 1e6
    for color, (name, ms) in zip(colors(list(seen)), seen.items(), strict=True):
        ax.plot(x, predicted[name], x, ms, "o", color=color, linewidth=1.2, markersize=4)
        ends.append((x[-1], predicted[name][-1], name, color))
        if x[0] < (at := crossings.get(name, 0) / 1e6) < x[-1]:
            ax.axvline(at, color=color, linestyle=":", linewidth=1.2)
            look = {"color": color, "fontsize": 8, "ha": "center", "backgroundcolor": "white"}
            spot = at, 0.93 - 0.1 * len(ax.texts)
            ax.text(*spot, f"{at:,.0f}", look, transform=ax.get_xaxis_transform())
    ax.set(xscale="log", yscale="log", ylabel="virtual ms a sum")
    ax.set_xlabel("bandwidth (MB/s); lines: predicted, dots: seen, dotted: crossings predicted")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


@figure
def race(curves: Mapping, costs: Mapping[str, Mapping], titles: Sequence[str]) -> np.ndarray:
    """Draw accuracy over what (steps, accuracy) of each method cost, a panel for each unit."""
    _, axes = plt.subplots(1, len(costs), figsize=(10, 3.2), sharey=True)
    for ax, (unit, each), first in zip(axes, costs.items(), titles, strict=True):
        for color, (name, (steps, share)) in zip(colors(list(curves)), curves.items(), strict=True):
            ax.plot(steps * each[name], share, color=color, linewidth=1.5, label=name)
        ax.set(xscale="log", xlabel=unit)
        ax.set_title(first, fontsize=8)
    axes[0].set_ylabel("test accuracy")
    axes[0].yaxis.set_major_formatter("{x:.0%}")
    axes[-1].legend(fontsize=8, loc="lower right")
    return axes


def as_feedback(step) -> str:
    """What is wrong with a step of error feedback, in words; nothing if it is right."""
    rng, residual = kinds.generator(), np.zeros(8)
    for _ in range(50):
        g = rng.normal(size=8) + 0.2
        kept, before, quantised = g.copy(), residual.copy(), []

        def quantise(x, quantised=quantised):
            quantised.append(np.array(x))
            return np.where(np.asarray(x) < 0, -1.0, 1.0)

        sent = np.asarray(step(g, residual, quantise))
        if len(quantised) != 1:
            return f"quantise: expected one call, got {len(quantised)}"
        whole, old = g + before, before.any()
        for wrong, said in (
            (not np.array_equal(g, kept), "g is changed, and should be left as it is"),
            (old and np.allclose(quantised, g), "the residual is missing: add it before that"),
            (not np.allclose(quantised, whole), "expected g + residual to be quantised"),
            (not np.allclose(sent, np.where(whole < 0, -1, 1)), "expected its result to be sent"),
            (np.array_equal(residual, before), "the residual has not changed: change it in place"),
            (old and np.allclose(residual, g - sent), "the old residual is lost: keep it, too"),
            (np.allclose(residual, sent - whole), "the residual has the wrong sign"),
            (not np.allclose(residual, whole - sent), "the residual is not what was not sent"),
        ):
            if wrong:
                return said
    return ""


@kinds.tested(
    as_feedback,
    "Follow one number of 0.3 through three messages: what is kept of it, and what is sent?",
    "residual += g; what is quantised then is the residual itself, before anything is taken off.",
)
def feedback(g, residual, quantise):
    """All that was ever given has either been sent, or waits in the residual."""
    residual += g
    sent = quantise(residual)
    residual -= sent
    return sent


@kinds.formula(
    lambda rng: {
        "bits": int(rng.choice([1, 2, 4, 8, 16])),
        "encode": float(rng.uniform(0.1, 10) * 1e9),
        "decode": float(rng.uniform(0.1, 30) * 1e9),
        "n_ranks": int(rng.integers(2, 65)),
    },
    "Count for one number of a shard: bytes saved by 2 (P − 1) messages, seconds of work more.",
    "Saved: 2 (P − 1) (4 − bits / 8). Work: P + 1 encodings and 2 P decodings of 4 bytes each.",
)
def pays_below(bits, encode, decode, n_ranks):
    """The bytes that are saved, over the seconds that this takes; n cancels out."""
    saved = 2 * (n_ranks - 1) * (4 - bits / 8)
    return saved / (4 * (n_ranks + 1) / encode + 4 * 2 * n_ranks / decode)


def as_packing(pack) -> str:
    """What is wrong with five ternary numbers in a byte, in words; nothing if it is right."""
    codes = kinds.generator().integers(0, 3, (200, 5)).astype(np.uint8)
    got, right = np.asarray(pack(codes.copy())), codes @ (3 ** np.arange(5))
    if got.dtype != np.uint8 or got.shape != (200,):
        return f"expected uint8 (200,), got {got.dtype} {got.shape}"
    if np.array_equal(got, codes @ (3 ** np.arange(5)[::-1])):
        return "the first of five should be the lowest digit, not the highest"
    k = int(np.argmax(got != right))
    return f"{codes[k]}: expected {right[k]}, got {got[k]}" * bool(got[k] != right[k])


@kinds.tested(
    as_packing,
    "How many different bytes do five numbers of three values need? And how many are there?",
    "They are the digits of a number to the base 3; beware of what overflows uint8 on the way.",
)
def five_in_a_byte(codes):
    """3⁵ = 243 values fit into a byte: 1.6 bits for a number, where log₂ 3 = 1.58 are needed."""
    return (codes @ (3 ** np.arange(5))).astype(np.uint8)


def as_bfloat16(rounding) -> str:
    """What is wrong with a rounding to bfloat16 by chance, in words; nothing if it is right."""
    rng, rows = kinds.generator(), []
    values = np.append(rng.normal(size=12), [0.0, 1.0, -1.0, 1e-3, 1 + 2**-9]).astype(np.float32)
    for _ in range(2000):
        chances = rng.integers(0, 1 << 16, values.shape).astype(np.uint32)
        rows.append(np.asarray(rounding(values.copy(), chances)))
        if rows[-1].dtype != np.float32:
            return f"expected float32, got {rows[-1].dtype}: view the bits as numbers again"
    result = np.array(rows)
    if (result.view(np.uint32) & np.uint32(0xFFFF)).any():
        return "the lower 16 bits are not all zero: no bfloat16"
    if (result == result[0]).all():
        return "all messages are the same: chances do not count"
    unit = 2.0 ** (np.floor(np.log2(np.maximum(abs(values), 2.0**-126))) - 7)
    off = abs(result.mean(0, dtype=np.float64) - values) / (unit / 2 / 2000**0.5)
    k = int(off.argmax())  # of a million that are right, not one is six standard errors off
    mean = f"of {values[k]:.6g} arrives {result[:, k].mean(dtype=np.float64):.6g} in the mean"
    return f"bfloat16: {mean}, {off[k]:.0f} standard errors off" * bool(off[k] > 6)


@kinds.tested(
    as_bfloat16,
    "bfloat16 is the upper half of a float32: view(np.uint32) shows all 32 bits.",
    "Add a chance of 16 bits to the bits, and the carry rounds up as often as it should.",
)
def bfloat16(values, chances):
    """The carry out of the lower half is the rounding; it works for both signs."""
    bits = values.view(np.uint32) + chances
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def as_vote(vote) -> str:
    """What is wrong with a majority vote of signs, in words; nothing if it is right."""
    for n_ranks, n in ((3, 6400), (5, 8000), (4, 4800)):
        world, rows = World(n_ranks), kinds.generator().normal(size=(n_ranks, n)).astype(np.float32)
        below = (rows < 0).sum(axis=0)
        right = np.where(2 * below > n_ranks, -1, 1)
        for got in map(np.asarray, world.run(lambda comm, rows=rows: vote(comm, rows[comm.rank]))):
            if got.shape != (n,) or not np.isin(got, (-1, 1)).all():
                return f"expected {n} signs, 1 or −1, on each rank"
            k = int(np.argmax(got != right))
            if got[k] != right[k]:
                return f"{below[k]} of {n_ranks} are negative: expected {right[k]}, got {got[k]}"
        sent, most = world.record.by_pair()[1].sum(1).max(), n_ranks * (n // 8 + 200)
        if sent > most:
            return f"{n} numbers on {n_ranks} ranks: a rank sends {sent} bytes, more than {most}"
    return ""


@kinds.tested(
    as_vote,
    "`pack` turns eight signs into a byte: send these to all, and count when all have come.",
    "`comm.Allgather(packed, all_of_them)`, then `unpack`; a sign that most ranks have, wins.",
)
def challenge_vote(comm, values):
    """A rank sends (P − 1) n bits; if owners of shards counted, 2 (P − 1)/P n would be enough."""
    packed = np.packbits(values < 0)
    received = np.empty((comm.size, packed.size), np.uint8)
    comm.Allgather(packed, received)
    below = np.unpackbits(received, axis=1, count=values.size).sum(axis=0)
    return np.where(2 * below > comm.size, -1, 1)
