"""The exercises of lesson 33."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch

from cnnlab import cuda, data
from cnnlab.check import inputs, kinds
from cnnlab.check.verdict import Verdict, differences
from cnnlab.cuda.emulator.cache import dram
from cnnlab.cuda.emulator.faults import ATOMIC, WRITE
from cnnlab.cuda.emulator.trace import Trace
from cnnlab.cuda.step import OnDevice
from cnnlab.measure.gpu import GPUS, LAUNCH
from cnnlab.measure.timing import in_words
from cnnlab.plots.style import COLORS, GREY, INK, OTHERS, as_rows, figure, note


@kinds.number(
    "How long does each layer take in CUDA? Its seconds by its speedup.",
    "All seconds one after the other, by the sum of those.",
    rtol=2e-3,
)
def together():
    """The network, which consists of these layers, got 34."""
    seconds = data.report()["sequential"]["layer_seconds"].values()
    times = data.report()["cuda"]["layer_speedups"]
    return sum(seconds) / sum(s / t for s, t in zip(seconds, times, strict=True))


@kinds.number(
    "How many steps has an epoch, and what does the host need for one?",
    "60,000 / 250 steps of 19 launches of 5 µs.",
    rtol=5e-3,
)
def floor():
    """240 steps, 95 µs each."""
    return 60_000 / 250 * 19 * 5e-6


@kinds.number(
    "Now every image is a step.",
    "60,000 steps of 19 launches of 5 µs.",
    rtol=5e-3,
)
def image_by_image():
    """60,000 steps: 250 times as long."""
    return 60_000 * 19 * 5e-6


@kinds.number(
    "How many outputs has a window, how large is the patch that they see, how many weights?",
    "4 outputs of 25 multiply-adds each; 6 × 6 pixels and 25 weights are loaded.",
    rtol=5e-3,
)
def smaller_windows():
    """Less than half of the 4.49 with windows of 4 × 4: a larger window shares more."""
    return 2 * 2 * 5 * 5 / (6 * 6 + 5 * 5)


def _arrays(n: int = 2, f: int = 2, p: int = 2, q: int = 3, k: int = 2) -> list[np.ndarray]:
    """dz, w and y at random, and an output full of NaN."""
    rng = np.random.default_rng(inputs.first_seed())
    shapes = (n, f, p, q), (f, k, k), (n, f, p * k, q * k)
    dz, w, y = (rng.uniform(0.02, 0.98, shape).astype(np.float32) for shape in shapes)
    return [dz, w, y, np.full_like(y, np.nan)]


def _both_at_once(operation: str, function) -> Verdict:
    """The verdict on a fused kernel: right numbers on several sizes, and no fault."""
    for sizes in ((), (1, 1, 1, 1, 1), (3, 6, 6, 6, 4), (5, 2, 9, 7, 3)):
        dz, w, y, out = _arrays(*sizes)
        k = w.shape[1]
        spread = np.repeat(np.repeat(dz, k, axis=2), k, axis=3)
        expected = spread * np.tile(w, (1, *dz.shape[2:])) * y * (1 - y)
        try:
            with cuda.traced() as traces:
                function(dz, w, y, out)
        except Exception as error:  # an answer may fail in any way: the verdict says how
            return Verdict(False, f"{operation}: raised {type(error).__name__}: {error}")
        faults = [fault for trace in traces for fault in trace.faults()]
        if faults:
            return Verdict(False, f"{operation}: {faults[0]}")
        if wrong := differences("out", out, expected, np.full_like(y, 1e-5)):
            return Verdict(False, f"{operation}: {wrong}")
    return Verdict(True, f"{operation}: right on four sizes, and no access is at fault")


def _launch(mine, dz, w, y, out):
    mine.over("my_backward", out.size, dz, w, y, out, out.size, *w.shape[:2], *y.shape[2:])


@kinds.cuda_c(
    "fused backward",
    _launch,
    "Take the thread's number apart into row, column, map and image. Which window is it in?",
    "Window (row / S, col / S), weight (row % S, col % S); then · y · (1 − y) in the same line.",
    arrays=_arrays,
    by=_both_at_once,
)
def fused():
    """The gradient between the two operations stays in a register: not written, and not read."""
    return """
extern "C" __global__ void my_backward(const float* dz, const float* w, const float* y, float* out,
                                       int size, int F, int S, int H, int W)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int col = i % W, row = i / W % H, f = i / (W * H) % F, n = i / (W * H * F);
    int P = H / S, Q = W / S;
    float dy = w[(f * S + row % S) * S + col % S]
               * dz[((n * F + f) * P + row / S) * Q + col / S];
    out[i] = dy * y[i] * (1.0f - y[i]);
}
"""


# --- when the host asks for each launch of a step, and when the device works on it ----------------

MODEL = "T4"
COPIES = 20  # of a launch in a graph, so that asking for it does not count


class Work(NamedTuple):
    """A launch of a step: bytes of DRAM, behind the L2 of `MODEL`, and seconds of the device."""

    kernel: str
    moved: float
    seconds: float


class Launch(NamedTuple):
    """A launch: when the host asks for it and goes on, when the device begins and ends; seconds."""

    kernel: str
    asked: float
    returned: float
    begin: float
    end: float


def said() -> str:
    """Where the times come from, in a line."""
    if cuda.gpu()[0]:
        return f"measured on {cuda.where()}: the host's clock, and events after each launch"
    asking = f"{1e6 * LAUNCH:g} µs to ask for a launch"
    return f"a model, not measured: {asking}, and DRAM bytes by the bandwidth of a {MODEL}"


def costs(make: Callable[[int], OnDevice], batches: Sequence[int]) -> dict[int, list[Work]]:
    """What each launch of a step of `make(batch)` costs, in order, for each of the batches."""
    result = {}
    for batch in batches:
        with cuda.traced(most=0) as traces:
            make(batch)()
        moved = [sum(one) for one in dram(traces, GPUS[MODEL].cache)]
        if cuda.gpu()[0]:
            seconds = _measured(make(batch))
        else:
            seconds = [n / GPUS[MODEL].bandwidth for n in moved]
        names = (trace.kernel for trace in traces)
        result[batch] = [Work(*one) for one in zip(names, moved, seconds, strict=True)]
    return result


def timeline(
    make: Callable[[int], OnDevice], batch: int, result: Sequence[Work], *, waits: bool = False
) -> list[Launch]:
    """The launches of a step of `make(batch)` over time; `result` are their costs.

    `waits` says whether the host waits after each launch, and not only at the end.
    """
    if not cuda.gpu()[0]:
        return modelled(result, waits=waits)
    step = make(batch)
    step()  # warm
    calls, launches, free = [call for stage in step.stages for call in stage], [], 0.0
    for cost, (asked, returned, end) in zip(result, cuda.stamps(calls, waits), strict=True):
        begin = max(asked, free, end - cost.seconds)
        launches.append(Launch(cost.kernel, asked, returned, begin, end))
        free = end
    return launches


def modelled(
    result: Sequence[Work], launch: float = LAUNCH, *, waits: bool = False
) -> list[Launch]:
    """The same without a GPU: asking takes `launch` seconds, and the device works in order."""
    launches, now, free = [], 0.0, 0.0
    for cost in result:
        begin = max(now + launch, free)
        free = begin + cost.seconds
        launches.append(Launch(cost.kernel, now, now + launch, begin, free))
        now = free if waits else now + launch
    return launches


def busy(launches: Sequence[Launch]) -> float:
    """The share of the time, from the first asking to the last end, in which the device works."""
    whole = max(one.end for one in launches) - launches[0].asked
    return sum(one.end - one.begin for one in launches) / whole


def _measured(step: OnDevice) -> list[float]:
    """Seconds of each launch by events around a graph of its copies; parameters stay."""
    result = []
    with step.undone():
        step()
        for call in (call for stage in step.stages for call in stage):
            copies = cuda.graph([[call]] * COPIES)
            copies()
            samples = [cuda.seconds(copies) for _ in range(7)]
            result.append(statistics.median(samples) / COPIES)
    return result


# --- which launch needs what another has left -----------------------------------------------------


class Passed(NamedTuple):
    """An array on its way from one launch to a later one, both by number.

    `array` is its name in the kernel that writes it; `bytes` counts what is read, each once.
    """

    giver: int
    taker: int
    array: str
    bytes: int


def passed_on(traces: Sequence[Trace]) -> list[Passed]:
    """What each launch reads that an earlier one wrote last, element by element.

    Of traces that are samples, only what the blocks in both of them touch.
    """
    result: list[Passed] = []
    left: list[tuple[int, str, int, np.ndarray]] = []  # a launch, its array, bytes of an element
    for taker, trace in enumerate(traces):
        written = []
        for number, array in enumerate(trace.arrays):
            mine = trace.array == number
            if array.shared or not mine.any():
                continue
            flags = trace.flags[mine]
            places, first = np.unique(trace.index[mine], return_index=True)
            needed = array.start + array.item * places[flags[first] & (WRITE | ATOMIC) != WRITE]
            for giver, name, item, those in left:
                if n := len(np.intersect1d(needed, those, assume_unique=True)):
                    result.append(Passed(giver, taker, name, item * n))
            if array.const or not (flags & WRITE).any():
                continue
            places = np.unique(trace.index[mine][flags & WRITE > 0])
            written.append((taker, array.name, array.item, array.start + array.item * places))
        new = np.concatenate([np.empty(0, np.int64), *(those for *_, those in written)])
        left = [(*who, np.setdiff1d(those, new)) for *who, those in left] + written
    return result


def levels(n_launches: int, passed: Sequence[Passed]) -> list[int]:
    """How many launches stand before each, one needing the other: 0 if it needs none.

    Launches of one level do not need each other, so they may run side by side.
    """
    result = [0] * n_launches
    for one in sorted(passed, key=lambda one: one.taker):
        result[one.taker] = max(result[one.taker], 1 + result[one.giver])
    return result


# --- the launches of a training step --------------------------------------------------------------

WAITING = "#d9d9d9"
ROW = 0.75  # inches from one row of a graph to the next


@figure
def launches_costs(result: Sequence[Work], *, timed: bool = False) -> Axes:
    """Draw a bar for each launch, in order: the bytes that it moves, or if `timed` its time."""
    names = [f"{number} {cost.kernel}" for number, cost in enumerate(result)]
    values = [1e6 * cost.seconds if timed else cost.moved / 1e6 for cost in result]
    whole = sum(values)
    _, ax = plt.subplots(figsize=(7.5, 0.9 + 0.28 * len(result)))
    ax.barh(names, values, 0.66, color=COLORS["device"])
    for y, (cost, value) in enumerate(zip(result, values, strict=True)):
        amount = in_words(cost.seconds) if timed else f"{value:.3g} MB"
        note(ax, f"{amount}, {value / whole:.1%}", (value, y), (5, 0), va="center", fontsize=9)
    unit = "µs, by the GPU's events" if timed else f"MB between DRAM and a {MODEL}'s L2, a model"
    ax.set(xlabel=unit, xlim=(0, 1.3 * max(values)))
    return as_rows(ax, names)


@figure
def needs(traces: Sequence) -> Axes:
    """Draw the launches of a step as a graph, from their traces: an arrow is an array passed on.

    A row holds launches that do not need each other; below a kernel's name, what it leaves.
    """
    passed = passed_on(traces)
    level = levels(len(traces), passed)
    rows = [[i for i, group in enumerate(level) if group == row] for row in range(1 + max(level))]
    places = {i: (column(k), y) for y, row in enumerate(rows) for k, i in enumerate(row)}
    wide = max(abs(x) for x, _ in places.values()) + 0.5
    _, ax = plt.subplots(figsize=(max(4.5, 4.4 * wide), 0.5 + ROW * len(rows)))
    for one in passed:
        (x0, y0), (x1, y1) = places[one.giver], places[one.taker]
        far = ROW * (y1 - y0)  # inches; past other rows, it bends around them
        bend = min(0.7, 1.9 / far) if far > ROW and x0 == x1 else 0
        bend *= 1 if x0 < 0 else -1
        look = {"color": OTHERS[one.giver % len(OTHERS)], "connectionstyle": f"arc3,rad={bend}"}
        ends = (x0, y0 + 0.27), (x1, y1 - 0.27)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, **look))
    for i, (x, y) in places.items():
        left = dict.fromkeys(f"{p.array} {p.bytes:,} B" for p in passed if p.giver == i)
        box = {
            "boxstyle": "round,pad=0.35",
            "facecolor": "white",
            "edgecolor": OTHERS[i % len(OTHERS)],
        }
        text = "\n".join([f"{i} {traces[i].kernel}", *([", ".join(left)] if left else [])])
        ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box)
    ax.set(xlim=(-wide, wide), ylim=(len(rows) - 0.55, -0.5))
    ax.axis("off")
    return ax


def column(k: int) -> int:
    """Where the launch number `k` of a row stands: in the middle, left, right, further left, …"""
    return (k + 1) // 2 * (-1 if k % 2 else 1)


@figure
def over_time(result: Mapping[str, Sequence[Launch]]) -> np.ndarray:
    """Draw what host and device do when: a panel for each way, a line for each launch between.

    A line leads from the end of asking to the begin of the work: the flatter, the longer it queued.
    """
    _, axes = plt.subplots(len(result), 1, figsize=(8, 0.6 + 1.35 * len(result)), squeeze=False)
    for ax, (name, launches) in zip(axes[:, 0], result.items(), strict=True):
        panel(ax, launches)
        end = launches[-1].end - launches[0].asked
        ax.set_title(f"{name}: {in_words(end)}", fontsize=10, loc="left")
    colors = {
        "host asks": INK,
        "host waits": WAITING,
        "device works": COLORS["device"],
    }
    keys = [Patch(color=color, label=label) for label, color in colors.items()]
    keys.append(Line2D([], [], color=GREY, linewidth=0.7, label="queued"))
    look = {"frameon": False, "fontsize": 8, "borderaxespad": 0, "ncols": 4}
    look |= {"columnspacing": 1, "handlelength": 1.2}
    axes[0, 0].legend(handles=keys, loc="lower right", bbox_to_anchor=(1, 1.02), **look)
    own = "; each panel has its own scale" if len(result) > 1 else ""
    axes[-1, 0].set_xlabel(f"µs since the host began to ask{own}")
    return axes[:, 0]


def panel(ax: Axes, launches: Sequence[Launch]) -> None:
    """One way to make the launches of a step: the host above, the device below."""
    start, following = launches[0].asked, [*launches[1:], None]
    for one, after in zip(launches, following, strict=True):
        asked, returned, begin, end = (1e6 * (time - start) for time in one[1:])
        waited = 1e6 * ((after.asked if after else one.end) - start)
        bar = {"height": 0.5, "edgecolor": "white", "linewidth": 0.4}
        ax.barh(0, waited - returned, left=returned, color=WAITING, height=0.5)
        ax.barh(0, returned - asked, left=asked, color=INK, **bar)
        ax.barh(1, end - begin, left=begin, color=COLORS["device"], **bar)
        ax.plot([returned, begin], [0.25, 0.75], color=GREY, linewidth=0.7)
    ax.set_yticks([0, 1], ["host", "device"])
    as_rows(ax, range(2))
