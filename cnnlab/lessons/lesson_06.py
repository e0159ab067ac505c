"""The exercises of lesson 06."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds, machine_code
from cnnlab.kernels.registers import LANES, block, load, store
from cnnlab.measure.timing import Timing
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import ERRORS, GREY, INK, LAYERS, WRONG, measured, note, style

SHADES = "white", LAYERS[1], LAYERS[3], LAYERS[4]


@kinds.choice("AB", "A register that begins an address, such as %rsp, is the stack.")
def which_spills():
    """`%rsp` is the stack: B loads a sum from there, adds to it, and stores it back."""
    return "B"


def draw_registers(rng):
    """The registers of a processor, and the pixels of a row."""
    return {"registers": int(rng.integers(4, 65)), "row": int(rng.integers(4, 100))}


@kinds.formula(
    draw_registers,
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
        at = f"for {registers} registers, {maps} × {pixels} pixels"
        if maps * pixels + pixels + 1 > registers or maps * pixels < 8:
            return (
                f"{at} have {maps * pixels} sums, and need {maps * pixels + pixels + 1} registers"
            )
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
def vector_sigmoid_backward(y, dy, dz):
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


# --- a tile of sums, step by step -----------------------------------------------------------------

EVENTS = "pixels are loaded", "the weight of map 1 is loaded", "the weight of map 2 is loaded"


def micro_kernel() -> Stepper:
    """A stepper through two taps of a tile of 2 maps × 6 pixels, above one of 1 × 12."""
    frames, captions = [], []
    for event in range(6):
        tap, part = divmod(event, 3)
        with style():
            page = Figure((4.4, 2.6))
            axes = page.subplots(2, 1, height_ratios=(3, 2))
        said = []
        for ax, (maps, n) in zip(axes, ((2, 6), (1, 12)), strict=True):
            cells, done = np.zeros((1 + maps, 1 + n)), min(part, maps)
            cells[1:, 1:] = 2  # sums, in registers
            cells[0, 1:] = 1
            if 0 < part <= maps:
                cells[part] = 1, *[3] * n
            ax.pcolormesh(cells, cmap=ListedColormap(SHADES), vmin=0, vmax=3, edgecolor="white")
            ax.set(ylim=(1 + maps, 0), xticks=(), yticks=(), aspect="equal")
            loads, sums = tap * (n + maps) + n + done, n * (tap * maps + done)
            ax.set_title(f"{maps} × {n}: {loads} loads, {sums} multiply-adds", fontsize=10)
            said.append(f"{maps} × {n} has {loads} loads and {sums} multiply-adds")
        frames.append(page)
        captions.append(f"Tap {tap + 1}: {EVENTS[part]}. {'; '.join(said)}.")
    title = "Blue: pixels and weights loaded; pale: sums in registers; brown: multiply-adds"
    return stepper(frames, title=title, captions=captions)


# --- rates over sizes, under the peak of the core -------------------------------------------------


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

    `what` says what the sizes are. `counts`, one for each size, stand as bars below, as `counted`;
    `marks` are sizes with a name, such as that of a cache.
    """
    x, marks = list(sizes), {name: at for name, at in (marks or {}).items() if at}
    seconds = np.array([(t.median, t.high, t.low) for t in sizes.values()]).T
    value, low, high = np.array(list(work)) / seconds / 1e9
    _, ax = plt.subplots(figsize=(7, 3.6))
    bars = ax.twinx() if len(counts) else None
    if bars:
        bars.bar(np.arange(len(x)), counts, 0.5, color=WRONG, alpha=0.35)
        bars.set(ylabel=counted, ylim=(0, 2.5 * max(*counts, 1)))
        bars.grid(visible=False)
    ax.axhline(peak / 1e9, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "the core's peak", (0, peak / 1e9), (0, 3), color=GREY)
    for name, at in marks.items():
        place = np.interp(np.log(at), np.log(x), np.arange(len(x)))
        ax.axvline(place, color=GREY, linestyle=":", linewidth=1.2)
        note(ax, name, (place, 0), (4, 4), color=GREY)
    ax.errorbar(
        np.arange(len(x)), value, [value - low, high - value], fmt="o-", color=INK, **ERRORS
    )
    ax.set(xlabel=what, ylabel="GFLOP/s", ylim=(0, 1.15 * max(peak / 1e9, *value)))
    ax.set_xticks(np.arange(len(x)), [f"{size:,.0f}" for size in x])
    return ax
