"""Lesson 06, registers: its processor, machine code, batch and drawings, and the exercises."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from cnnlab import data
from cnnlab.check import kinds, machine_code
from cnnlab.kernels import lanes, steps
from cnnlab.kernels.programme import programme
from cnnlab.kernels.registers import LANES, block, budget, detected, load, store
from cnnlab.measure import bench, machine
from cnnlab.measure.timing import Timing, compare
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import ERRORS, GREY, INK, LAYERS, WRONG, measured, note


class Processor:
    """The registers of this processor, its peak, and how many sums the package keeps in them."""

    def __init__(self):
        self.name, self.lanes, self.count = detected()
        _, (self.maps, self.taps), _, (rows, columns) = budget(detected())
        self.pixels = rows * columns
        chains = (machine.float32_peak(0.1, self.lanes, n) for n in (8, self.pixels))
        self.peak = max(machine.float32_peak(), *chains)  # FLOP/s
        self.zeros = lanes.zeros  # arrays that begin at the start of a cache line

    def chains(self, n: int, lanes: int | None = None) -> float:
        """The share of the peak of n chains of multiply-adds, each waiting for the one before."""
        return machine.float32_peak(0.1, lanes or self.lanes, n) / self.peak


class Code:
    """A kernel's innermost loop: its text, n instructions, loads for each multiply-add, spills."""

    def __init__(self, kernel: Callable):
        loads, _, terms, self.n = machine_code.counts(kernel)
        self.loads, self.spills = loads / terms, machine_code.spills(kernel)
        self.loop = machine_code.hot_loop(machine_code.assembly(kernel)).rstrip()


class Batch:
    """The first images, so many blocks of LANES, and what a step of the report's network needs.

    `layers` and `tables` are its programme; `memory` is that of each block, which keeps `kept` KiB;
    `exact` are the reference's gradients, `caches` the processor's, in KiB, and `work` the
    multiply-adds of an image by layer, forward and backward.
    """

    def __init__(self, n_blocks: int):
        digits = data.load("auto", n_train=n_blocks * LANES, n_test=100)
        images, self.labels, network = digits.train_images, digits.train_labels, Network()
        self.images, params = images.reshape(len(images), -1), network.parameters()
        self.params, self.grads = params.flat, network.zeros().flat
        self.layers, self.tables = programme(network)[:2]
        self.memory = steps.memory("lesson 06", network, (n_blocks,))
        self.exact = bench.exact_gradients(params, images, self.labels).flat
        self.kept = self.memory.flat[0, 0].nbytes / 2**10  # of one vector of images
        self.caches = {at: n / 2**10 for at, n in (machine.describe()["caches"] or {}).items()}
        self.work = {
            said: sum(n for name, n in network.multiply_adds.items() if name.startswith(kind))
            for kind, said in bench.LAYERS.items()
        }

    def parts(self, many_images: Callable) -> tuple[float, dict]:
        """Microseconds an image of a step on one block, and of its parts, each alone: the least."""
        own, arrays = steps.of_worker(self.memory, 0), (self.layers, self.tables, self.params)
        last = np.arange(steps.BLOCK), own
        calls = {"": partial(many_images, *arrays, self.grads, self.images, self.labels, *last)}
        keys = [(what, i) for i in range(3) for what in ("forward", "sigmoid", "backward")]
        for key in [*keys, ("side by side", 0), ("lanes added up", 0), ("a call", 0)]:
            calls[key] = partial(part, *key, *arrays, self.grads, own, self.images)
        least = {key: min(t.samples) for key, t in compare(calls, repeats=61).items()}
        call = least.pop(("a call", 0))  # of nothing: what Python takes
        alone = {key: 1e6 * (t - call) / steps.BLOCK for key, t in least.items()}
        return alone.pop(""), alone

    def beside_the_report(self, micros: float, peak: float) -> None:
        """Print the rates of the report's sequential epoch and of steps that take µs an image."""
        theirs, ours = data.report()["sequential"]["epoch_seconds"], micros * bench.EPOCH / 1e6
        for name, epoch in (("the report, sequential", theirs), ("here", ours)):
            print(f"{name}: {bench.FLOPS / epoch / 1e9:.2f} GFLOP/s, an epoch in {epoch:.2f} s")
        print(f"one core's peak here: {peak / 1e9:.0f} GFLOP/s")


@numba.njit(error_model="numpy")
def part(what, i, layers, tables, params, grads, own, images):
    """One part of a step of a block, of layer i; called alike, so that each call costs the same."""
    r = layers[i]
    if what == "forward":
        steps.forward(r, params, own.flat, tables, len(own.flat))
    elif what == "backward":
        steps.backward(r, params, grads, own.flat, own.sums, tables, len(own.flat))
    elif what == "sigmoid":
        for flat in own.flat:
            lanes.activate(flat[r.y :], r.F * r.P * r.Q, r.activation)
    elif what == "side by side":
        for v, flat in enumerate(own.flat):
            lanes.to_lanes(images.reshape(images.size), own.numbers[v], images.shape[1], flat)
    elif what == "lanes added up":
        steps.add_lanes(layers, own.sums, grads)


# --- exercises ------------------------------------------------------------------------------------


@kinds.choice("AB", "A register that begins an address, such as %rsp, is the stack.")
def which_spills():
    """`%rsp` is the stack: B loads a sum from there, adds to it, and stores it back."""
    return "B"


@kinds.formula(
    lambda rng: {"registers": int(rng.integers(4, 65)), "row": int(rng.integers(4, 100))},
    "The loop of conv_pixels also needs a register for the weight and one for the pixel.",
    "A block must not be longer than the row either.",
)
def pixels_that_fit(registers, row):
    """The rest is for sums; of 16 registers the table takes 12, which divides a row of 24."""
    return min(registers - 2, row)


def loads(maps: int, pixels: int) -> float:
    """Loads for each multiply-add of a tile: a weight of each map, and each pixel, for each tap."""
    return (maps + pixels) / (maps * pixels)


def tile_for_any(answer: Callable) -> str:
    """What is wrong with a function that chooses a tile for so many registers, or nothing."""
    for registers in (12, 16, 24, 32, 64):
        fewest = loads(*best_tile.model()(registers))
        maps, pixels = answer(registers)
        at, sums = f"for {registers} registers, {maps} × {pixels} pixels", maps * pixels
        if sums + pixels + 1 > registers or sums < 8:
            return f"{at} have {sums} sums, and need {sums + pixels + 1} registers"
        if loads(maps, pixels) > fewest * (1 + 1e-9):
            return f"{at} load {loads(maps, pixels):.3g} for a multiply-add, {fewest:.3g} will do"
    return ""


@kinds.tested(
    tile_for_any,
    "Try all pairs: which fit, with 8 sums or more?",
    "The loads of a tap are maps + pixels, its multiply-adds maps · pixels.",
)
def best_tile(registers):
    """Of 32 registers, five maps of five pixels: ten loads for 25 multiply-adds. A square."""
    sizes = range(1, registers)
    pairs = [(m, p) for m in sizes for p in sizes if m * p >= 8 and m * p + p + 1 <= registers]
    return min(pairs, key=lambda pair: sum(pair) / (pair[0] * pair[1]))


@kinds.kernel(
    "sigmoid_backward",
    "For which sizes is it right already? The loop leaves out what is no whole block of four.",
    "After the blocks of four come single vectors, `block(…, 1)`; after those, number by number.",
    by=machine_code.kernel,
)
@numba.njit(error_model="numpy")
def challenge_sigmoid_backward(y, dy, dz):
    """Blocks of four vectors, then single vectors, then what is left of one."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    one, four, single = np.float32(1), block(np.float32(0), 4), block(np.float32(0), 1)
    whole = y.size // LANES
    for m in range(0, whole - 3, 4):
        a = load(y, m, four)
        store(dz, m, load(dy, m, four) * (a * (one - a)))
    for m in range(whole - whole % 4, whole):
        a = load(y, m, single)
        store(dz, m, load(dy, m, single) * (a * (one - a)))
    for i in range(whole * LANES, y.size):
        dz[i] = dy[i] * (y[i] * (one - y[i]))


# --- drawings -------------------------------------------------------------------------------------


def micro_kernel() -> Stepper:
    """A stepper through one tap of a tile of 6 maps × 2 pixels, beside one of 1 × 12."""
    shades, frames, captions = ListedColormap(["white", *LAYERS[1:5:2], LAYERS[4]]), [], []
    for event in range(7):
        axes, said = frame((5.2, 2.4), 1, 2, width_ratios=(3, 8)), []
        for ax, (maps, n) in zip(axes, ((6, 2), (1, 12)), strict=True):
            cells, done = np.zeros((1 + maps, 1 + n)), min(event, maps)
            cells[0, 1:], cells[1:, 1:] = 1, 2  # pixels; sums, in registers
            if 0 < event <= maps:
                cells[event] = 1, *[3] * n
            ax.pcolormesh(cells, cmap=shades, vmin=0, vmax=3, edgecolor="white")
            ax.set(ylim=(1 + maps, 0), xticks=(), yticks=(), aspect="equal")
            said.append(f"{maps} × {n}: {n + done} loads, {n * done} multiply-adds")
            ax.set_title(said[-1].replace(", ", "\n"), fontsize=10)
        frames.append(axes[0].figure)
        loaded = f"the weight of map {event} is loaded" if event else "pixels are loaded"
        captions.append(f"One tap: {loaded}. {'; '.join(said)}.")
    title = "Blue: pixels and weights loaded; pale: sums in registers; brown: multiply-adds"
    return stepper(frames, title=title, captions=captions)


@measured
def rates(
    sizes: Mapping[float, Timing],
    work: Iterable[float],
    peak: float,
    *,
    what: str,
    counts: Sequence[int] = (),
    counted: str = "",
    marks: Mapping[str, float] | None = None,
) -> Axes:
    """Draw GFLOP/s of calls over their sizes, each of so much `work` (FLOP), under `peak` (FLOP/s).

    Points are the fastest runs, as the peak is, with bars down to the median. `what` says what the
    sizes are; `counts`, one each, are bars below, as `counted`; `marks` beyond them are left out.
    """
    x, places = list(sizes), np.arange(len(sizes))
    seconds = np.array([(min(t.samples), t.median) for t in sizes.values()]).T
    value, low = np.array(list(work)) / seconds / 1e9
    _, ax = plt.subplots(figsize=(7, 3.6))
    if counts:
        bars = ax.twinx()
        bars.bar(places, counts, 0.5, color=WRONG, alpha=0.35)
        bars.set(ylabel=counted, ylim=(0, 2.5 * max(*counts, 1)))
        bars.grid(visible=False)
    ax.axhline(peak / 1e9, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "the core's peak", (0, peak / 1e9), (0, 3), color=GREY)
    for name, at in (marks or {}).items():
        if x[0] <= at <= x[-1]:
            place = np.interp(np.log(at), np.log(x), places)
            ax.axvline(place, color=GREY, linestyle=":", linewidth=1.2)
            note(ax, name, (place, 0), (4, 4), color=GREY)
    ax.errorbar(places, value, [value - low, 0 * low], fmt="o-", color=INK, **ERRORS)
    ax.set(xlabel=what, ylabel="GFLOP/s", ylim=(0, 1.15 * max(peak / 1e9, *value)))
    ax.set_xticks(places, [f"{size:,.0f}" for size in x])
    return ax
