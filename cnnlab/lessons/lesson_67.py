"""The exercises of lesson 67, its charts, and a counter to prove a sensor on."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, colors, figure, label_ends

LAYERS = {"conv": COLORS["vector"], "dense": COLORS["device"], "other": GREY}


def nvml(kind: Callable, start: int, later: int) -> float:
    """Joules that a sensor reads from an NVML whose counter goes on by `later` millijoules."""
    readings, handle = [start, start + later], 7

    def find(index, device):
        device._obj.value = handle
        return 0

    def read(device, count):
        count._obj.value = readings.pop(0)
        return device.value != handle

    return kind(
        SimpleNamespace(
            nvmlInit_v2=lambda: 0,
            nvmlDeviceGetHandleByIndex_v2=find,
            nvmlDeviceGetTotalEnergyConsumption=read,
        )
    ).joules()


def playback(watts: float) -> SimpleNamespace:
    """A sensor that plays a load of so many watts."""
    return SimpleNamespace(joules=lambda: watts * time.perf_counter())


def on_device(forward: Callable, arrays: Sequence[np.ndarray]) -> Callable[[], None]:
    """A call of a kernel on copies of the arrays on the device, which waits until it is done."""
    given = [cuda.array_module().asarray(array) for array in arrays]

    def call():
        forward(*given)
        cuda.wait()

    return call


# --- pictures -------------------------------------------------------------------------------------


@figure
def shares(curves: Mapping, batches: Sequence[int], paper: Mapping) -> Sequence[Axes]:
    """Draw per cent of a step's energy by kind of layer over the batch; dashed: as measured."""
    nets = list(dict.fromkeys(net for net, _ in curves))
    _, axes = plt.subplots(1, len(nets), figsize=(8.2, 3.2), sharey=True)
    for ax, net in zip(axes, nets, strict=True):
        for kind, color in LAYERS.items():
            ax.plot(batches, curves[net, kind], marker="o", ms=4, color=color, label=kind)
        for kind, share in paper.get(net, {}).items():
            ax.axhline(share, color=LAYERS[kind], ls="--", lw=1)
        ax.set(xscale="log", xlabel=f"images a batch, {net}", ylim=(0, 100))
        ax.set_xticks(batches, ["" if n in (64, 256) else n for n in batches])
        ax.xaxis.minorticks_off()
    axes[0].set_ylabel("% of the energy")
    axes[0].legend(frameon=False, fontsize=8, loc="center left")
    return axes


@figure
def lines(at: Sequence[float], curves: Mapping, x: str, y: str, **limits) -> Axes:
    """Draw a line for each name, with its name at the end, and a dot at its least."""
    _, ax = plt.subplots(figsize=(7.2, 3.6))
    ax.set(xlabel=x, ylabel=y, **limits)
    ends = []
    for (name, line), color in zip(curves.items(), colors(list(curves)), strict=True):
        ax.plot(at, line, color=color, lw=5 if name.startswith("four") else 1.5)
        ends.append((at[-1], line[-1], name, color))
        if "xscale" not in limits:
            least = int(np.argmin(line))
            ax.plot(at[least], line[least], "o", color=color, ms=6)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


def areas(power: Callable, clocks: Sequence[float]) -> Stepper:
    """Step through clocks: power over time, and energy as the area below."""
    idle, captions = power(0), []

    def draw(ax: Axes, f: float) -> None:
        ax.bar(0, idle, 1 / f, align="edge", color=GREY)
        ax.bar(0, power(f) - idle, 1 / f, idle, align="edge", color=COLORS["device"])
        ax.set(xlim=(0, 1.1 / min(clocks)), ylim=(0, 1.1 * power(1)), xlabel="seconds")
        ax.set_ylabel("watts; grey: idle")

    for f in clocks:
        still, moving = idle / f, (power(f) - idle) / f
        text = f"Clock {f:g}: {power(f):.0f} W for {1 / f:.2f} s make {still + moving:.0f} J"
        captions.append(f"{text}, {still:.0f} idle and {moving:.0f} dynamic.")
    frames = [lambda ax, f=f: draw(ax, f) for f in clocks]
    return stepper(frames, title="Model: energy is an area", captions=captions)


# --- the exercises --------------------------------------------------------------------------------


@kinds.formula(
    lambda rng: {
        "serial": float(rng.uniform(0.01, 0.5)),
        "package": float(rng.uniform(20, 50)),
        "core": float(rng.uniform(0.1, 10)),
    },
    "Static energy is watts times time: package + n core, times serial + (1 - serial) / n.",
    "Of the four products two do not depend on n; the others are equal at the least.",
)
def best_threads(serial, package, core):
    """Few threads pay the package for long, many pay for cores that wait for the serial part."""
    return (package * (1 - serial) / (core * serial)) ** 0.5


def joules_at(f, idle, dynamic, waits):
    """Joules of work 1 at clock f, with `waits` seconds for memory."""
    return (idle + dynamic * f**3) * (1 / f + waits)


def _as_clock(choose) -> str:
    rng, clocks = kinds.generator(), np.linspace(0.05, 1, 20_000)
    for idle, waits, slack in ((40, 0, 9), (40, 2, 9), (40, 2, 0.2), (300, 0, 9), (5, 0.5, 0.5)):
        how = idle * rng.uniform(0.9, 1.1), 60 * rng.uniform(0.9, 1.1), waits * rng.uniform(0.9, 1)
        deadline = 1 + how[2] + slack * rng.uniform(0.9, 1)
        f = choose(*how, deadline)
        case = f"idle {how[0]:.1f} W, c {how[1]:.1f} W, {how[2]:.2f} s for memory"
        if not 0 < f <= 1:
            return f"{case}: {f:.3g} is no clock between 0 and 1"
        if 1 / f + how[2] > deadline * 1.0001:
            return f"{case}: done after {1 / f + how[2]:.2f} s, too late for {deadline:.2f}"
        least = joules_at(clocks[1 / clocks + how[2] <= deadline], *how).min()
        if joules_at(f, *how) > 1.0005 * least:
            return f"{case}: {joules_at(f, *how):.1f} J at {f:.3f}, and {least:.1f} are enough"
    return ""


@kinds.tested(
    _as_clock,
    "Which clocks are in time, 1 / f + waits at most the deadline? None is above 1.",
    "Try a few thousand clocks between 1 / (deadline - waits) and 1; no formula is needed.",
)
def best_clock(idle, dynamic, waits, deadline):
    """A deadline cuts off slow clocks; while it waits for memory, a low clock costs no time."""
    clocks = np.linspace(1 / (deadline - waits), 1, 5000)
    return clocks[np.argmin((idle + dynamic * clocks**3) * (1 / clocks + waits))]


def _as_mean(estimate) -> str:
    rng = kinds.generator()
    for every, n, share in ((0.1, 4, 1), (0.06, 3, 0.5), (0.15, 3, 1), (0.2, 8, 0.37)):
        busy, high, first = rng.uniform(0.2, 0.5), rng.uniform(200, 400), rng.uniform(0, 1)
        ticks = np.add.outer(every * np.arange(30), np.linspace(0, every / n, 200))
        left, period = iter(range(n)), share * every

        def read(start, ticks=ticks, left=left, n=n, load=(period, busy, high, first)):
            if next(left, None) is None:
                raise ValueError(f"more than {n} runs")
            period, busy, high, first = load
            return float(np.where((start + first + ticks) / period % 1 < busy, high, 50).mean())

        got, mean = estimate(read, every, every / n), busy * high + (1 - busy) * 50
        if not abs(got / mean - 1) < 0.03:
            return f"a period of {1e3 * period:g} ms: {got:.1f} W, and the mean is {mean:.1f}"
    return ""


@kinds.tested(
    _as_mean,
    "A run sees one window of each interval. Where must the next begin, to see the next part?",
    "The k-th of every / window runs begins at k window. Round: 0.15 / 0.05 may be below 3.",
)
def mean_watts(read, every, window):
    """Windows side by side cover the whole interval, each part of it once."""
    return np.mean([read(k * window) for k in range(round(every / window))])


@kinds.labels(
    ["sound", "counter wrapped", "part not counted", "idle power", "sampled in step"],
    [
        "can a difference of two counters be negative?",
        "which device else is awake while the GPU trains?",
        "does the sensor see all parts of a step?",
        "how long did each run, and what does an idle machine draw?",
        "what does a longer run change here?",
    ],
    "For each report, ask what its sensor saw, and for how long.",
    "One is sound. Where an error is the same in every reading, repeating does not help.",
)
def diagnosis():
    """A sum over a missing turn; the CPU's share; one part of each step; idle seconds; sound."""
    return ["counter wrapped", "part not counted", "sampled in step", "idle power", "sound"]


def all_joules(layers, clocks, idle, dynamic):
    """Joules and seconds of layers (work, seconds for memory), each at its clock."""
    seconds = [work / f + waits for (work, waits), f in zip(layers, clocks, strict=True)]
    watts = [idle + dynamic * f**3 for f in clocks]
    return sum(w * s for w, s in zip(watts, seconds, strict=True)), sum(seconds)


def _as_plan(plan) -> str:
    rng, choices = kinds.generator(), [0.4, 0.6, 0.8, 1.0]
    for late, *watts in ((1.02, 30, 70), (1.2, 30, 70), (1.6, 30, 70), (3, 60, 40)):
        layers = [tuple(map(float, pair)) for pair in rng.uniform(0.1, 1, (4, 2)) * [[1, 2]]]
        deadline = late * all_joules(layers, [1] * 4, *watts)[1]
        got = list(plan(list(layers), list(choices), *watts, deadline))
        if len(got) != 4 or not {*got} <= {*choices}:
            return f"expected four of {choices}, got {got}"
        joules, seconds = all_joules(layers, got, *watts)
        if seconds > deadline * (1 + 1e-9):
            return f"{seconds:.2f} s are too late for a deadline of {deadline:.2f}"
        right = challenge_clocks.model()(layers, choices, *watts, deadline)
        least, _ = all_joules(layers, right, *watts)
        if joules > least * (1 + 1e-9):
            return f"deadline {deadline:.2f} s: {joules:.1f} J, and {least:.1f} are enough"
    return ""


@kinds.tested(
    _as_plan,
    "How many plans are there for four layers and four clocks? Few enough to try them all.",
    "itertools.product(choices, repeat=len(layers)); of those in time, the least energy.",
)
def challenge_clocks(layers, choices, idle, dynamic, deadline):
    """A layer that waits for memory gains little time from a high clock, and pays all of it."""
    import itertools

    def cost(clocks):
        joules, seconds = 0, 0
        for (work, waits), f in zip(layers, clocks, strict=True):
            took = work / f + waits
            joules, seconds = joules + took * (idle + dynamic * f**3), seconds + took
        return joules if seconds <= deadline else np.inf

    return min(itertools.product(choices, repeat=len(layers)), key=cost)
