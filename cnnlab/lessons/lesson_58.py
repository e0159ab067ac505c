"""Lesson 58: the trainings that searches score, drawings, and the exercises."""

import functools
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import data
from cnnlab.check import kinds
from cnnlab.kernels import find
from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Network, Pool, ReLU, Sigmoid
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, OTHERS, as_rows, figure
from cnnlab.training.loop import accuracy
from cnnlab.training.method import Method
from cnnlab.training.optimizers import Momentum
from cnnlab.training.replica import Replica

N_TRAIN, N_HELD = 400, 437  # digits to train on, and others of the training images to score on
POOLS = {"max": MaxPool, "average": AveragePool, "trainable": Pool}


class Result(NamedTuple):
    """A score on held-out images, accuracy on test images, seconds trained, state to go on from."""

    score: float
    state: object = None
    test: float = float("nan")
    seconds: float = 0.0


@functools.cache
def digits() -> tuple:
    """The digits, a `cnnlab.data.Dataset`, and the same with held-out images in place of test."""
    dataset = data.load("digits")
    return dataset, data.held_out(dataset, N_TRAIN, N_HELD)


def network_of(config: Mapping) -> Network:
    """The report's network, or that of the genes filters, kernel, pool, size and hidden."""
    if "filters" not in config:
        return Network()
    hidden = (Dense(config["hidden"]), ReLU()) if config["hidden"] else ()
    pool = POOLS[config["pool"]](config["size"])
    layers = Conv(config["filters"], config["kernel"]), ReLU(), pool, *hidden, Dense(10), Sigmoid()
    return Network(layers, (1, 28, 28))


def evaluate(config: Mapping, epochs: int, seed: int, state: dict | None = None) -> Result:
    """Train with momentum (1 − friction) for some epochs, from a state or from the seed; score it.

    The state holds the parameters and the velocity, both float32 (n,).
    """
    begin, strategy, (dataset, held) = time.perf_counter(), find("vector"), digits()
    params = network_of(config).parameters(seed, strategy.dtype)
    optimizer = Momentum(config["rate"], 1 - config["friction"])
    if state:
        params.flat[:] = state["params"]
        optimizer.state["velocity"] = state["velocity"].copy()
    images = held.train_images, held.train_labels
    replica = Replica(strategy, params, *images, config["batch"], optimizer)
    rng, method = np.random.default_rng(seed), Method()
    with np.errstate(over="ignore", invalid="ignore"):  # what diverges has a low score
        for _ in range(epochs):
            method.steps(replica, rng.permutation(N_TRAIN))
        score, test = (accuracy(strategy, params, d.test_images, d.test_labels)
                       for d in (held, dataset))  # fmt: skip
    after = {"params": params.flat, "velocity": optimizer.state["velocity"]}
    return Result(score, after, test, time.perf_counter() - begin)


@figure
def timelines(pools: Mapping) -> np.ndarray:
    """Draw what each worker does when, a panel for each run; white is waiting."""
    _, axes = plt.subplots(len(pools), 1, figsize=(8, 2.1 * len(pools)), sharex=True)
    for ax, (name, pool) in zip(axes, pools.items(), strict=True):
        for worker, begin, end in pool.spans:
            look = {"color": COLORS["threads"], "edgecolor": "white", "linewidth": 1}
            ax.barh(worker, 1e3 * (end - begin), 0.7, 1e3 * begin, **look)
        ax.axvline(1e3 * pool.now, color=GREY, linestyle="--")
        ax.set_title(f"{name}: {pool.waited():.0%} waiting", fontsize=10, loc="left")
        ax.set_yticks(range(pool.n_workers), [f"worker {k}" for k in range(pool.n_workers)])
        as_rows(ax, range(pool.n_workers))
    axes[-1].set_xlabel("virtual ms")
    return axes


def rungs(results: Mapping, spans: list) -> Stepper:
    """Halving, a frame a result: configurations beside each other, their scores on the rungs."""
    spans, frames, captions = sorted(spans, key=lambda span: span[2]), [], []
    columns = list(dict.fromkeys(id(trial.config) for trial in results))
    scores = {(columns.index(id(t.config)), t.note): r.score for t, r in results.items()}
    for (worker, _, now), (place, score) in zip(spans, scores.items(), strict=True):
        page, ax = plt.subplots(figsize=(5, 2.5), layout="constrained")
        begun = {at: span for at, span in zip(scores, spans, strict=True) if span[1] <= now}
        for (x, k), (w, _, end) in begun.items():
            text, ink = (f"{scores[x, k]:.1f}", INK) if end <= now else (f"w{w}", OTHERS[1])
            box = {"facecolor": "#d5e3ef" if (x, k + 1) in begun else "white", "edgecolor": ink}
            ax.text(x, k, text, color=ink, ha="center", va="center", fontsize=8, bbox=box)
        ax.set(xlim=(-1, len(columns)), ylim=(-1, 3), xticks=[], yticks=range(3), ylabel="rung")
        after = [f", then trains for rung {k}" for (_, k), s in begun.items() if s[1] == now]
        captions.append(f"Worker {worker} scores {score:.2f} on rung {place[1]}{''.join(after)}.")
        frames.append(page)
    return stepper(frames, title="ASHA: scores; blue: promoted; w1: on worker 1", captions=captions)


@figure
def paths(runs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Draw the paths (2, turns, 2) of two members over θ₀ and θ₁, a panel for each variant."""
    _, axes = plt.subplots(1, len(runs), figsize=(9, 2.5), sharey=True)
    for ax, (name, both) in zip(axes, runs.items(), strict=True):
        for path, color in zip(both, OTHERS, strict=False):
            ax.plot(*path.T, color=color, linewidth=1.4)
        ax.scatter(0, 0, 60, INK, marker="*", clip_on=False, zorder=3)
        ax.set(xlabel="θ₀", xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1])
        ax.set_title(name, fontsize=9)
    axes[0].set_ylabel("θ₁")
    return axes


@figure
def race(raced: Mapping[str, list[Mapping]], effects: Mapping[str, tuple]) -> np.ndarray:
    """Draw best scores over epochs, median and middle half, and leads (low, mean, high)."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(3, 2))
    colors = dict(zip(raced, (GREY, *OTHERS), strict=False))
    for name, runs in raced.items():
        spent = [np.cumsum([trial.epochs for trial in results]) for results in runs]
        best = [np.maximum.accumulate([r.score for r in results.values()]) for results in runs]
        grid = np.arange(max(e[0] for e in spent), min(e[-1] for e in spent) + 1)
        best = [b[np.searchsorted(e, grid, "right") - 1] for b, e in zip(best, spent, strict=True)]
        low, median, high = np.percentile(best, (25, 50, 75), axis=0)
        left.step(grid, median, where="post", color=colors[name], label=name)
        left.fill_between(grid, low, high, step="post", color=colors[name], alpha=0.13)
    left.set(xlabel="epochs trained", ylabel="best so far: median, middle half", ylim=(0.8, 1))
    left.set_yticks(np.arange(80, 101, 5) / 100, [f"{n}%" for n in range(80, 101, 5)])
    left.legend(frameon=False, fontsize=9)
    for row, (name, (low, mean, high)) in enumerate(effects.items()):
        right.plot([low, high], [row, row], color=colors.get(name, INK), linewidth=2)
        right.plot(mean, row, "o", color=colors.get(name, INK))
    right.axvline(0, color=GREY, linestyle="--")
    right.set(xlabel="points more than random search, 95 %")
    right.set_yticks(range(len(effects)), list(effects))
    as_rows(right, list(effects))
    return np.array([left, right])


@figure
def again(chosen: np.ndarray, retrained: np.ndarray) -> Axes:
    """Draw each winner's score when it was chosen (dot), and trained anew (ring), in order."""
    _, ax = plt.subplots(figsize=(8, 2.8))
    x, order = np.arange(len(chosen)), np.argsort(chosen)
    ax.vlines(x, chosen[order], retrained[order], color=GREY, linewidth=0.8)
    for scores, label, fill in ((chosen, "chosen", "full"), (retrained, "trained anew", "none")):
        ax.plot(x, scores[order], "o", color=OTHERS[0], fillstyle=fill, label=label)
    ax.set(xlabel="winners, by score", ylabel="held-out accuracy", xticks=[])
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False, fontsize=9)
    return ax


@kinds.formula(
    lambda rng: {
        **{"n": int(rng.integers(1, 100)), "p": 16, "g": int(2 ** rng.integers(5))},
        **{"compute": float(rng.uniform(1, 2)), "allreduce": float(rng.uniform(0.01, 0.5))},
    },
    "p // g trainings run at once. In how many rounds are n of them done?",
    "A training takes compute / g + allreduce, and a group of one has no allreduce.",
)
def groups(n, p, g, compute, allreduce):
    """Ranks in a group pay for the allreduce; ranks without a training wait in the last round."""
    return math.ceil(n / (p // g)) * (compute / g + (g > 1) * allreduce)


BRACKETS = {  # by the longest training and η
    (81, 3): [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)],
    (16, 4): [(16, 1), (6, 4), (3, 16)],
    (1, 2): [(1, 1)],
}


def as_brackets(answer) -> str:
    """The fault of a list of Hyperband's brackets, in words; empty if there is none."""
    for (longest, eta), right in BRACKETS.items():
        if (got := list(map(tuple, answer(longest, eta)))) != right:
            return f"longest {longest}, eta {eta}: expected {right}, got {got}"
    return ""


@kinds.tested(
    as_brackets,
    "The most rungs: how often can longest be divided by eta? That is s of the first bracket.",
    "Bracket s begins with longest // eta**s epochs, and ceil((most + 1) * eta**s / (s + 1)).",
)
def brackets(longest, eta):
    """After Li and others 2018. All cost about the same; the last, without halving, is random."""
    most = 0
    while eta ** (most + 1) <= longest:
        most += 1
    numbers = range(most, -1, -1)
    return [(math.ceil((most + 1) * eta**s / (s + 1)), longest // eta**s) for s in numbers]


def as_promotion(answer) -> str:
    """The fault of a promotion, in words; empty if there is none."""
    for seed in range(300):
        rng, numbers = np.random.default_rng(seed), iter(range(99))
        eta, scores = int(rng.integers(2, 4)), iter((rng.permutation(99) / 100).tolist())
        sizes = sorted(rng.integers(0, 4 + seed // 20, 2 + seed % 3), reverse=True)
        rungs = [{next(numbers): next(scores) for _ in range(n)} for n in sizes]
        best = [sorted(rung, key=rung.get)[::-1][: len(rung) // eta] for rung in rungs]
        promoted = {trial for few in best for trial in few[: int(rng.integers(len(few) + 1))]}
        left = [(k, t) for k in range(len(rungs) - 1)[::-1] for t in best[k] if t not in promoted]
        got, right = answer([dict(r) for r in rungs], set(promoted), eta), next(iter(left), None)
        if (got if got is None else tuple(got)) != right:
            why = "" if got is None or tuple(got) in left else "it has gone on before, or may not, "
            return f"{why}expected {right}, got {got}: {rungs=}, {promoted=}, {eta=}"
    return ""


@kinds.tested(
    as_promotion,
    "Which rung is looked at first? And which trials are among the best 1/eta of a rung?",
    "Rank all of a rung, take its best len // eta, and only then leave out the promoted ones.",
)
def promote(rungs, promoted, eta):
    """Of all scored on a rung, promoted or not, 1/η may go on; the highest rung comes first."""
    for k in reversed(range(len(rungs) - 1)):
        ranked = sorted(rungs[k], key=rungs[k].get, reverse=True)
        for trial in ranked[: len(ranked) // eta]:
            if trial not in promoted:
                return k, trial
    return None


def challenge(mine: Callable, in_parallel: Callable, best: float) -> float | None:
    """The mean score of a search, `mine(run, rng)`, with five new seeds; None: not yet answered."""
    if kinds.empty(mine):
        return print("challenge: not yet answered")
    one = {"evaluate": evaluate, "budget": 144, "pool": ThreadPoolExecutor(1), "n_workers": 1}
    run, seeds = functools.partial(in_parallel, **one), range(100, 105)
    results = [mine(run, np.random.default_rng(seed)).values() for seed in seeds]
    outcome = [max(result.score for result in each) for each in results]
    print(f"{np.mean(outcome):.1%} held out, the mean of five seeds; best of the race {best:.1%}")
    return float(np.mean(outcome))
