"""The exercises of lesson 69, its charts, and the flow graph to step through."""

import base64
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, as_rows, colors, figure, note, style

Clusters = Sequence[str]  # what each value belongs to: those of one are no independent draws


def inputs(rows: int, dtype: str, n: int = 64, m: int = 5) -> tuple:
    """x (rows, 2n + 2m), y (rows, n), w (n, n), a permutation (n), n and m: small whole numbers."""
    rng, T = np.random.default_rng(0), np.dtype(dtype).type
    x = rng.integers(0, 8, (rows, 2 * (n + m))).astype(T)
    w = rng.integers(0, 4, (n, n)).astype(T)
    return x, np.zeros((rows, n), T), w, rng.permutation(n), n, m


def packed(value) -> str:
    """What JSON holds, compressed to a text."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.b85encode(zlib.compress(text, 9)).decode()


def unpacked(text: str):
    return json.loads(zlib.decompress(base64.b85decode(text)))


# --- intervals ------------------------------------------------------------------------------------


def interval(values: Sequence[float], clusters: Clusters) -> tuple[float, float, float]:
    """The mean, and 95 % of the means when whole clusters are drawn again, 2,000 times."""
    place = np.unique(clusters, return_inverse=True)[1]
    sums, sizes = np.bincount(place, values), np.bincount(place)
    drawn = np.random.default_rng(0).integers(0, len(sums), (2000, len(sums)))
    low, high = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975])
    return float(np.mean(values)), float(low), float(high)


def between(values: Sequence[float], clusters: Clusters, scale: Callable = float) -> str:
    """The mean and its interval, each through `scale`."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*map(scale, interval(values, clusters)))


def in_words(difference: Sequence[float], clusters: Clusters, scale: Callable = float) -> str:
    """A mean difference in words, none if its interval, as printed, holds 0; through `scale`."""
    mean, low, high, none = (round(scale(x), 2) for x in (*interval(difference, clusters), 0.0))
    apart = "not told apart" if low < high else "the same"
    what = apart if low <= none <= high else "more" if mean > none else "less"
    form, unit = ("+.2f", "") if scale is float else (".2f", " times")
    return f"{what}, {mean:{form}}{unit} ({low:{form}} to {high:{form}})"


# --- pictures -------------------------------------------------------------------------------------


def short(text: str) -> str:
    """A statement's operation and first type."""
    called = re.search(r"@(?:llvm\.)?([a-z]+)", text)
    name = called[1] if called else text.removeprefix("<ID> = ").split()[0]
    first = re.search(r"\b(i\d+|float|double)\b", text)
    return f"{name.replace('getelementptr', 'address')} {first[1] if first else ''}".strip()


def contexts(graph: Sequence, centre: int, near: Sequence[np.ndarray]) -> Stepper:
    """Step through a flow graph, then what is near one statement, at growing distance."""
    texts, data, flow = graph
    ends = [k for k, text in enumerate(texts) if re.match(r"br|ret", text)]
    block = np.searchsorted(ends, range(len(texts)))
    order = [0]  # of blocks, as control comes to them
    for here in order:
        order += dict.fromkeys(
            block[b] for a, b in flow if block[a] == here and block[b] not in order
        )
    at = [(order.index(block[k]), [-1, *ends][block[k]] - k) for k in range(len(texts))]
    frames, captions = [], []
    for distance in range(len(near) + 1):
        inside = near[distance - 1] if distance else np.zeros(len(texts), bool)
        with style():
            ax = (page := Figure((7.2, 3.3), layout="none")).add_axes((0, 0, 1, 1))
        ax.axis("off")
        ax.set(xlim=(-0.55, len(order) - 0.45), ylim=(min(y for _, y in at) - 0.6, 0))
        for edges, color in ((flow, COLORS["device"]), (data, COLORS["vector"])):
            look = {"arrowstyle": "->", "color": color, "lw": 0.7, "aa": False}
            for a, b in edges:
                columns, rows = np.abs(np.subtract(at[a], at[b]))
                bent = 0.3 * (columns == 0 and rows > 1) - 0.12 * (rows == 0 and columns > 1)
                near_both = not distance or {a, b} <= {centre, *np.flatnonzero(inside)}
                look |= {"connectionstyle": f"arc3,rad={bent}", "alpha": 1 if near_both else 0.15}
                ax.annotate("", at[b], at[a], arrowprops=look)
        for k, text in enumerate(texts):
            face = COLORS["device"] if k == centre else "#d5e3ef" if inside[k] else "white"
            box = {"boxstyle": "round,pad=0.25", "fc": face, "ec": INK, "lw": 0.6, "aa": False}
            look = {"fontsize": 6.5, "ha": "center", "va": "center", "bbox": box}
            ax.text(*at[k], short(text), color="white" if k == centre else INK, **look)
        what = f"{len(texts)} statements. Blue: data; orange: flow. A column is a block."
        near_it = f"Context {distance}: {inside.sum()} statements are near the orange one."
        captions.append(near_it if distance else what)
        frames.append(page)
    return stepper(frames, title="What is near the addition of a scan", captions=captions)


@figure
def plane(vectors: np.ndarray, vocabulary: Sequence[str], of_kind: np.ndarray) -> Axes:
    """Draw statements in the plane of their two largest principal components."""
    _, ax = plt.subplots(figsize=(7.2, 4.2))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    left, size, _ = np.linalg.svd(unit - unit.mean(0), full_matrices=False)
    at = left[:, :2] * size[:2]
    for kind, color in zip(np.unique(of_kind), colors(list(np.unique(of_kind))), strict=True):
        ax.plot(*at[of_kind == kind].T, "o", color=color, ms=4, label=kind)
    named = r"fadd (float|double) <ID>, <ID>|load (float|double|i32|i16)|= add i32 <ID>, <ID>"
    for text, point in zip(vocabulary, at, strict=True):
        if re.search(named, text):
            note(ax, short(text), point, (4, -8 if "load" in text else 3), fontsize=7)
    first, second = (f"{x:.0%} of the variance" for x in size[:2] ** 2 / (size**2).sum())
    ax.set(xlabel=f"first principal component, {first}", ylabel=f"second, {second}")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


@figure
def verdicts(panels: Mapping, clusters: Clusters, base: float, scale: Callable = float) -> Axes:
    """Draw means and intervals over `base`, by split and kind of features, controls in grey."""
    _, axes = plt.subplots(1, len(panels), figsize=(7.4, 3.2), sharey=True, sharex=True)
    for ax, (split, rows) in zip(axes, panels.items(), strict=True):
        for name, values in rows.items():
            mean, low, high = map(scale, interval(values, clusters))
            color = GREY if re.match("random|always|majority|size", name) else COLORS["vector"]
            look = {"fmt": "o", "color": color, "ecolor": GREY, "elinewidth": 2}
            ax.errorbar(mean, name, xerr=[[mean - low], [high - mean]], **look)
        ax.axvline(base, color=INK, ls="--", lw=1)
        ax.set_xlabel("share right" if scale is float else "times as fast")
        ax.set_title(f"not seen: {split}", fontsize=9)
        as_rows(ax, list(rows))
    return axes


# --- the exercises --------------------------------------------------------------------------------


def _as_context(find) -> str:
    rng = kinds.generator()
    for n, m in ((5, 4), (12, 14), (40, 45)):
        edges = [(a, b) for a, b in rng.integers(0, n, (m, 2)).tolist() if a != b]
        for distance in (1, 2, 4):
            start = int(rng.integers(n))
            got = find(list(edges), start, distance)
            expected = in_context.model()(edges, start, distance)
            if set(got) != expected:
                more, less = sorted({*got} - expected), sorted(expected - {*got})
                what = f"{more} are too many" if more else f"{less} are missing"
                return f"edges {edges}, from {start}, distance {distance}: {what}"
    return ""


@kinds.tested(
    _as_context,
    "Start with the statement alone, and widen the circle by one edge at a time.",
    "An edge leads both ways. The statement itself is not in its own context.",
)
def in_context(edges, start, distance):
    """A matrix of all pairs isn't needed: the work is all edges, once a step."""
    reached = {start}
    for _ in range(distance):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    return reached - {start}


def _as_factors(factorise) -> str:
    rng = kinds.generator()
    for n, k, dims in ((6, 1, 6), (9, 5, 3), (15, 2, 4)):
        seen = rng.poisson(4, (n, n)) * (rng.random((n, n)) < 0.7)
        seen = seen + seen.T + np.eye(n, dtype=int)
        got, expected = (f(seen.copy(), k, dims) for f in (factorise, factorised.model()))
        got = np.asarray(got, float)
        if got.shape != expected.shape:
            return f"expected {expected.shape}, got {got.shape}"
        far = abs(got @ got.T - expected @ expected.T).max()  # the same but for signs
        if not far < 1e-6:
            return f"{n} statements, k = {k}, {dims} dimensions: products are off by {far:.2g}"
    return ""


@kinds.tested(
    _as_factors,
    "Which matrix do the products of vectors converge to? Unseen pairs have minus infinity in it.",
    "ln(#(i,j) / (k #(i) p_j)), negative ones as 0; U and S of its SVD; columns of U times √S.",
)
def factorised(seen, k, dims):
    """No seed and no rate: an SVD factorises a clipped version of what skip-gram approaches."""
    noise = seen.sum(0) ** 0.75 / (seen.sum(0) ** 0.75).sum()
    expected = k * seen.sum(1)[:, None] * noise
    pmi = np.log(np.maximum(seen / expected, 1))
    left, size, _ = np.linalg.svd(pmi)
    return left[:, :dims] * np.sqrt(size[:dims])


@kinds.labels(
    ["sound", "leak", "no baseline", "chance", "wrong measure"],
    [
        "what does the learner know of each tested kernel already?",
        "what have both seen, and what is the gain compared with?",
        "what would a rule say that reads nothing?",
        "how far do five seeds lie apart?",
        "what does a user of the choice get?",
        "who has seen the tested families, and when?",
    ],
    "Ask of each: what does the learner know before, and what is its result compared with?",
    "One is sound, two leak.",
)
def diagnosis():
    """A twin in another type; clean; always one; one seed; time counts; chosen on the test."""
    return ["leak", "sound", "no baseline", "chance", "wrong measure", "leak"]


def _as_choice(choose) -> str:
    rng = kinds.generator()
    for n, m, d, f in ((5, 3, 1, 2), (30, 10, 4, 4), (60, 20, 8, 4)):
        x, new = rng.standard_normal((n, d)), rng.standard_normal((m, d))
        log_times = rng.standard_normal((n, f)) + 3 * rng.standard_normal((n, 1))
        got = [int(k) for k in choose(x.copy(), log_times.copy(), new.copy())]
        expected = [int(k) for k in challenge_choose.model()(x, log_times, new)]
        if got != expected:
            return f"{n} known kernels, {f} factors: expected {expected[:8]} …, got {got[:8]} …"
    return ""


@kinds.tested(
    _as_choice,
    "How large is the loss if a wrong choice is nearly as fast? A label does not say.",
    "Per new kernel: its three nearest, the mean of each column of their logarithms, the least.",
)
def challenge_choose(x, log_times, new):
    """A near tie costs nearly nothing, whichever is chosen; a label counts it as a whole error."""
    nearest = (np.argsort(((x - each) ** 2).sum(1))[:3] for each in new)
    return [int(log_times[three].mean(0).argmin()) for three in nearest]
