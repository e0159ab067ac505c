"""Lesson 53, another direction: what is trained, the pictures, and the exercises."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.data import Dataset
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.plots.style import GREY, INK, colors, figure
from cnnlab.training import Replica, Sgd


def replica(images: Dataset, seed: int) -> Replica:
    """The report's network with parameters from a seed, and the images to train it on."""
    params, kernels = Network().parameters(seed), KERNELS["vector"]
    return Replica(kernels, params, images.train_images, images.train_labels, 1, Sgd(1.0))


# --- pictures ---------------------------------------------------------------------------------


def contours(ax: Axes, matrix: np.ndarray, wide: float, tall: float) -> None:
    """The loss ½ wᵀ·matrix·w around its minimum, as grey lines."""
    x, y = np.meshgrid(np.linspace(-wide, wide, 81), np.linspace(-tall, tall, 81))
    height = np.einsum("iab,ij,jab->ab", [x, y], matrix, [x, y]) / 2
    ax.contour(x, y, height, height.max() * np.geomspace(1e-3, 1, 7), colors=GREY, linewidths=0.5)
    ax.plot(0, 0, "+", color=INK)
    ax.set(xlim=(-wide, wide), ylim=(-tall, tall), xticks=[], yticks=[], aspect="equal")


@figure
def paths(rows: Mapping[str, tuple[np.ndarray, Mapping[str, np.ndarray]]]) -> np.ndarray:
    """Draw the paths of optimisers down a ravine: by row, its matrix and places (T, 2) by name."""
    names = list(next(iter(rows.values()))[1])
    _, axes = plt.subplots(len(rows), len(names), figsize=(10, 1.9 * len(rows)))
    for row, (label, (matrix, places)) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(label)
        for ax, (name, path), color in zip(row, places.items(), colors(names), strict=True):
            contours(ax, matrix, 1.2, 1.2)
            ax.plot(*path.T, "o-", color=color, markersize=2, linewidth=0.8)
            ax.set_title(name, fontsize=9, color=color)
    return axes


def arrows(ax: Axes, matrix: np.ndarray, path: np.ndarray, t: int, parts: Mapping, half) -> None:
    """A frame of the stepper: the path up to step t, arrows by name, an ellipse's half axes."""
    contours(ax, matrix, 1.2, 0.7)
    ax.plot(*path[: t + 1].T, "o-", color=GREY, markersize=3, linewidth=0.8)
    for (name, part), color in zip(parts.items(), colors(list(parts)), strict=True):
        ax.quiver(*path[t], *part, color=color, angles="xy", scale_units="xy", scale=1, label=name)
    if half is not None:
        turn = np.linspace(0, 2 * np.pi, 60)
        x, y = (path[t] + np.column_stack([np.cos(turn), np.sin(turn)]) * half).T
        ax.plot(x, y, ":", color=INK, linewidth=1, label="rate · √â")
    ax.legend(fontsize=7, loc="lower left")


@figure
def panels(lines: Mapping[str, Mapping], y: str, dots: Mapping | None, ticks) -> np.ndarray:
    """Draw lines (x, y) by name, a panel for each unit; ideals are dashed, dots are seeds."""
    _, axes = plt.subplots(1, len(lines), figsize=(10, 3.4), sharey=bool(y), squeeze=False)
    for ax, (unit, each) in zip(axes[0], lines.items(), strict=True):
        for color, (name, seeds) in zip(colors(list(each)), each.items(), strict=True):
            ideal = {"linestyle": "--", "color": GREY} if "ideal" in name else {"color": color}
            for k, points in enumerate(seeds):
                ax.plot(*points, linewidth=1, label="" if k else name, **ideal)
            if dots and name in dots:
                ax.plot(*dots[name], "o", color=color, markersize=3.5)
        ax.set(xscale="log", yscale="log", xlabel=unit)
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
    axes[0, 0].set_ylabel(y)
    axes[0, -1].legend(fontsize=7)
    return axes


# --- exercises --------------------------------------------------------------------------------


# What to say of an answer that leads where the model answer does with pieces replaced.
MEANS = "m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)"
MISTAKES = {
    "corrected": {
        "the velocity still holds the old rate": {" * rate / last": ""},
        "the velocity is scaled the wrong way": {"rate / last": "last / rate"},
    },
    "nesterov": {
        "the gradient is taken behind w, not ahead of it": {"w + v": "w - v"},
        "the gradient is taken at w, which is plain momentum": {"w + v": "w"},
        "the gradient is weighed by 1 − µ": {"rate *": "(1 - momentum) * rate *"},
        "w steps along the velocity before the update": {
            "v *=": "old = v.copy()\n    v *=", "w += v": "w += old"},
    },
    "adamw": {
        "ε lies inside the root": {"v_hat**0.5 + 1e-8": "(v_hat + 1e-8) ** 0.5"},
        "nothing is divided by 1 − βᵗ": {MEANS: "m_hat, v_hat = m, v"},
        "the corrected averages are carried on": {
            MEANS: MEANS.replace("m_hat, v_hat", "m[:], v[:]"), "m_hat /": "m /", "v_hat**": "v**"},
        "t is one too large": {"**t": "**(t + 1)"},
        "the decay goes through the averages, which is Adam with L2": {
            "m += ": "g = g + decay * w\n    m += ", " + decay * w)": ")"},
    },
    "challenge_lars": {
        "the decay is missing below the line": {" + decay * length": ""},
        "the decay is missing in the step": {"(g + decay * w)": "g"},
        "this is plain descent: where is the trust ratio?": {"* trust": ""},
        "the trust ratio is upside down": {"* trust": "/ trust"},
    },
}  # fmt: skip


def answer(name: str, changes: Mapping[str, str]) -> Callable:
    """The model answer of that name with pieces of its source replaced: a student's mistake."""
    text = Path(__file__).read_text(encoding="utf-8").partition(f"\ndef {name}(")[2]
    source, scope = f"def {name}({text.partition(chr(10) * 3)[0]}", {"np": np}
    for before, after in changes.items():
        source = source.replace(before, after)
    exec(source, scope)
    return scope[name]


def judged(name: str, drive: Callable, update: Callable) -> str:
    """What is wrong with an update, in words: it leads elsewhere than the model answer.

    `drive(update, rng)` returns the start and the end, or says what is wrong.
    """
    seed = int(kinds.generator().integers(1 << 30))
    ends = drive(update, np.random.default_rng(seed))
    if isinstance(ends, str):
        return ends
    (start, got), expected = ends, {}
    for words, changes in {"": {}, **MISTAKES[name]}.items():
        with np.errstate(all="ignore"):
            expected[words] = drive(answer(name, changes), np.random.default_rng(seed))[1]
        if np.allclose(got, expected[words], rtol=1e-6, atol=1e-14):
            return words
    if np.array_equal(got, start):
        return "w has not moved: change it in place"
    if not np.isfinite(got).all():
        return "w is not finite: is something divided by 1 − β⁰?"
    return f"w is off by up to {np.abs(got - expected['']).max():.2g}"


@kinds.formula(
    lambda rng: {
        "steps_8": int(rng.integers(2000, 4000)),
        "steps_512": int(rng.integers(300, 600)),
    },
    "Steps = least (1 + critical / B) are a straight line over 1 / B: what are its two ends?",
    "The slope over 1 / B is least · critical; subtract it to get least.",
)
def critical_batch(steps_8, steps_512):
    """Over 1 / B: the slope of the line, over where it meets 1 / B = 0."""
    slope = (steps_8 - steps_512) / (1 / 8 - 1 / 512)
    return slope / (steps_512 - slope / 512)


def with_rates(update, rng):
    """Eleven steps of a momentum whose velocity holds the rate, which changes twice."""
    rates, (w, v) = [0.1] * 4 + [0.01] * 3 + [0.04] * 4, np.zeros((2, 5))
    for rate, last in zip(rates, rates[:1] + rates, strict=False):
        update(w, v, rng.normal(size=5) + 1, rate, last)
    return np.zeros(5), w


@kinds.tested(
    partial(judged, "corrected", with_rates),
    "v is −rate times a sum of gradients. By what is it to be multiplied if only the rate changes?",
    "What is left of old gradients should count at the new rate, too: put it in, take the old out.",
)
def corrected(w, v, g, rate, last):
    """The velocity holds the old rate: taken out, and the new one put in."""
    v *= 0.9 * rate / last
    v -= rate * g
    w += v


def in_two_places(update, rng):
    """Twelve steps of Nesterov's momentum on five weights of different steepness."""
    start, steep, v = rng.normal(size=5), rng.uniform(1, 20, 5), np.zeros(5)
    w = start.copy()
    for _ in range(12):
        update(w, v, lambda at: steep * at, 0.02, 0.9)
    return start, w


@kinds.tested(
    partial(judged, "nesterov", in_two_places),
    "Where does the velocity lead, before this gradient is known? Call slope there.",
    "v *= momentum first: then the place is w + v.",
)
def nesterov(w, v, slope, rate, momentum):
    """The sign matters: w + µv is where the velocity leads."""
    v *= momentum
    v -= rate * slope(w + v)
    w += v


def through_sizes(update, rng):
    """Twelve steps of AdamW along gradients from 1e-9 to 1: beside the smallest, ε counts."""
    w, m, v = np.ones(10), np.zeros(10), np.zeros(10)
    for t in range(1, 13):
        g = rng.normal(size=10) * 10.0 ** np.arange(-9, 1)
        given = g.copy()
        update(w, m, v, given, t, 0.01, 0.1)
        if not np.array_equal(given, g):
            return "g is changed, and should be left as it is"
    return np.ones(10), w


@kinds.tested(
    partial(judged, "adamw", through_sizes),
    "m and v are averages of g and g² alone; the decay shrinks w beside them.",
    "Take the root first, then add ε. What is divided by 1 − βᵗ is only used for this step.",
)
def adamw(w, m, v, g, t, rate, decay):
    """The decay is not divided by √v̂: all weights shrink by the same share."""
    m += (1 - 0.9) * (g - m)
    v += (1 - 0.999) * (g**2 - v)
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    w -= rate * (m_hat / (v_hat**0.5 + 1e-8) + decay * w)


def by_layers(update, rng):
    """A step of three layers whose gradients are of very different sizes."""
    start = [rng.normal(size=shape) for shape in ((6, 25), (6, 16), (216, 10))]
    grads = [10.0 ** (3 * k - 3) * rng.normal(size=w.shape) for k, w in enumerate(start)]
    layers = [w.copy() for w in start]
    update(layers, grads, 0.01, 0.1)
    return [np.concatenate([w.ravel() for w in each]) for each in (start, layers)]


@kinds.tested(
    partial(judged, "challenge_lars", by_layers),
    "trust = ‖w‖ / (‖g‖ + decay ‖w‖), one number for each layer, from `np.linalg.norm`.",
    "w −= rate · trust · (g + decay · w), in place, layer by layer.",
)
def challenge_lars(layers, grads, rate, decay):
    """A layer moves by about `rate` of its own length, however large its gradient is."""
    for w, g in zip(layers, grads, strict=True):
        length = np.linalg.norm(w)
        trust = length / (np.linalg.norm(g) + decay * length)
        w -= rate * trust * (g + decay * w)
