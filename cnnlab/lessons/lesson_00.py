"""Lesson 00: pictures of the network, times of its steps and layers, and the exercises."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from cnnlab.check import kinds
from cnnlab.measure import bench, machine, timing
from cnnlab.measure.timing import Timing
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import INK, LAYERS, figure, note
from cnnlab.training import BATCH, RATE

NET, SIGNS = Network(), ListedColormap([LAYERS[4], "white", LAYERS[1]])
PLACES = {  # where each layer's numbers are drawn: left, top, size of a map, maps in a row
    "image": (0, 1, 28, 1),
    "convolution": (43, 0, 9, 2),
    "pooling": (76, 4.5, 6, 2),
    "fully connected": (106, 0, 3, 1),
}


def what_runs_here() -> int:
    """Print this machine and what the course runs on it; the float32 lanes of its vectors."""
    facts = machine.describe()
    print(machine.summary(), end="\n\n")
    print(f"one core   works on {facts['simd_lanes'] or 1} numbers (float32) with one instruction")
    print(f"threads    {facts['usable_cores']} at a time")
    print("ranks      with MPI" if facts["mpi"] else "ranks      in a virtual world: no MPI here")
    print("GPU        yes" if facts["gpu"] else "GPU        none: CUDA C runs on an emulator")
    return facts["simd_lanes"] or 1


def spot(stage: str, k: int, row: float = 0, column: float = 0, n: int = 1) -> tuple:
    """Where row and column of map k, which has n × n numbers, are drawn."""
    left, top, size, columns = PLACES[stage]
    x, y = k % columns * (size + 1.5), k // columns * (size + 1.5 * (columns > 1))
    return left + x + column * size / n, top + y + row * size / n


def draw(ax: Axes, values: Sequence, back: int = 9, windows: Sequence = (), greys: int = 4) -> None:
    """One image's numbers at each layer, None where there are none yet: maps, and ten bars.

    Those from number `back` on are gradients, with colours by sign. `windows` have a stage, a map,
    row, column, size and numbers in a row; lines join all with the last.
    """
    shapes = NET.image_shape, *(NET[name].shape for name in ("conv", "pool", "dense"))
    for k, (stage, array) in enumerate(zip(PLACES, values, strict=True)):
        (left, _, size, _), n = PLACES[stage], shapes[k][0]
        ax.text(left, 33, f"{stage}\n{' × '.join(map(str, shapes[k]))}", va="top", fontsize=8.5)
        low, most = (0, 1) if array is None else (array.min(), abs(array).max())
        look = {"cmap": plt.get_cmap("gray_r", greys), "vmin": low, "vmax": most}
        if k >= back:
            look = {"cmap": SIGNS, "vmin": -most, "vmax": most}
        for f, (x, y) in enumerate(spot(stage, f) for f in range(n)):
            if n == 10:
                length = 0 if array is None else 22 * array[f]
                ax.barh(y + 1.5, length, 2.3, x + 4, color=LAYERS[4 if length < 0 else 1])
                ax.text(x, y + 1.5, f, va="center", fontsize=8)
                continue
            ax.add_patch(plt.Rectangle((x, y), size, size, fc="none", ec="#bbbbbb", lw=0.8))
            if array is not None:
                ax.imshow(array[f], extent=(x, x + size, y + size, y), **look)
    centres = []
    for stage, f, row, column, size, n in windows:
        (x, y), side = spot(stage, f, row, column, n), size * PLACES[stage][2] / n
        ax.add_patch(plt.Rectangle((x, y), side, side, fill=False, ec=INK, lw=1.5))
        centres.append((x + side / 2, y + side / 2))
    for centre in centres[:-1]:
        ax.plot(*zip(centre, centres[-1], strict=True), color=INK, lw=0.8)
    ax.set(xlim=(-1, 133), ylim=(39, -2), aspect="equal")
    ax.axis("off")


@figure
def network(values: Sequence) -> Axes:
    """Draw one image's numbers at each layer, and how many parameters lead there."""
    _, ax = plt.subplots(figsize=(8, 2.8))
    draw(ax, values, greys=256)
    for x, layer in zip((30, 64, 92), ("conv", "pool", "dense"), strict=True):
        n = sum(np.prod(s) for k, s in NET.parameter_shapes.items() if k.startswith(layer))
        ax.annotate("", (x + 10, 15), (x, 15), arrowprops={"arrowstyle": "->", "color": INK})
        note(ax, f"{n:,}\nparameters", (x + 5, 14), (0, 2), ha="center", fontsize=8.5)
    return ax


def one_pass(values: Sequence, grads: Sequence, label: int) -> Stepper:
    """Step an image through the network: its numbers at each layer, and back, their gradients."""
    f, p, q = np.unravel_index(abs(grads[0]).argmax(), grads[0].shape)
    window, one = ("image", 0, p, q, 5, 28), ("convolution", f, p, q, 1, 24)
    four = "convolution", f, p // 4 * 4, q // 4 * 4, 4, 24
    pooled, best = ("pooling", f, p // 4, q // 4, 1, 6), int(values[3].argmax())
    outs, work = [("fully connected", k, 0, 0, 1, 1) for k in range(10)], NET.multiply_adds
    maps = [("pooling", k, 0, 0, 6, 6) for k in range(6)]
    conv, pool, dense = np.cumsum([work[f"{name}_forward"] for name in ("conv", "pool", "dense")])
    back = dense + work["dense_backward_weights"] + work["dense_backward_input"]
    slope = "× y (1 − y)"  # the sigmoid's
    below, total = back + 2 * work["pool_forward"], sum(work.values())
    frames = [  # layers filled, gradients from, windows, multiply-adds so far, what happens
        (1, 9, [window, one], 25, "25 pixels × 25 weights, added: one number of a map."),
        (2, 9, [four, pooled], conv + 16, "Six maps. 16 numbers × 16 weights: one number."),
        (3, 9, [*maps, outs[best]], pool + 216, f"216 numbers × 216 weights: output {best}."),
        (4, 9, [], dense, f"Ten outputs. The largest says {best}."),
        (4, 3, [], dense, f"Backward. The errors dz3: outputs, minus 1 at label {label}."),
        (4, 2, [*outs, pooled], back, f"Errors × weights, added, {slope}: dz2. × inputs: dw3."),
        (4, 1, [pooled, four], below, f"dz2 × weights, {slope}: 4 × 4 of dz1. × inputs: dw2."),
        (4, 1, [one, window], total, "dz1 × its 25 pixels, added over the map: dw1."),
    ]
    pages = []
    for n, since, windows, *_ in frames:
        shown = [values[k] if k < since else grads[k - 1] for k in range(n)] + [None] * (4 - n)
        ax = frame((6.4, 2.2))
        draw(ax, shown, since, windows)
        pages.append(ax.figure)
    captions = [f"{text} Multiply-adds: {total:,}." for *_, total, text in frames]
    return stepper(pages, title="One image, forward and back", captions=captions)


def step_times(gradients: Callable, data) -> dict[str, Timing]:
    """The time of a training step by `loops`, `vector` and NumPy, each checked before.

    `gradients(params, x, labels)` are the six of a batch.
    """
    params, x, labels = NET.parameters(), data.train_images[:BATCH], data.train_labels[:BATCH]

    def step() -> None:
        for array, gradient in zip(params, gradients(params, x, labels), strict=True):
            array -= RATE / BATCH * gradient

    def check() -> None:
        got = np.concatenate([gradient.ravel() for gradient in gradients(params, x, labels)])
        timing.same(got, bench.exact_gradients(params, x, labels).flat, name="gradients of NumPy")

    racers = {"NumPy": SimpleNamespace(steps=step, check=check, n_steps=1)}
    racers |= bench.contestants(["loops", "vector"], data, BATCH, n_threads=1, against=None)
    racers["vector"].n_steps = len(data.train_labels) // BATCH  # in a sample: an epoch is enough
    return bench.step_times(racers, repeats=15, min_time=0.02)


# --- the exercises --------------------------------------------------------------------------------


@kinds.number(
    "Each layer has weights and biases: six arrays. A filter has 5 × 5 weights for each channel.",
    "After the convolution, maps have 28 × 28 numbers, after the pooling 7 × 7: 294 in all.",
)
def parameters():
    """Three channels triple the filters' weights. Larger images add weights to the last layer."""
    return (6 * 3 * 5 * 5 + 6) + (6 * 4 * 4 + 6) + (10 * 6 * 7 * 7 + 10)


@kinds.kernel(
    "sigmoid",
    "Like sigmoid_backward, with another line in the loop: np.exp takes a number, too.",
    "NaN is what a y holds before the call: does the loop reach every number?",
)
@numba.njit
def sigmoid_kernel(z, y):
    """As in `sigmoid_backward`, a float32 `one` keeps the arithmetic in float32."""
    one, z, y = np.float32(1), z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        y[m] = one / (one + np.exp(-z[m]))


@kinds.kernel(
    "dense_backward_bias",
    "The verdict names a factor, and the sizes of the arrays: which of them has to do with it?",
    "A mean is the sum, divided by the number of images. The formula does not divide. And a kernel "
    "returns nothing: it writes into its last argument, db[:] = …",
)
def bias_gradient(dz, db):
    """The slice writes into the array that db names; `db = …` would only give a name to another."""
    db[:] = dz.sum(axis=0)


def colleague(z: np.ndarray, y: np.ndarray) -> None:
    """A colleague's sigmoid: fast, and wrong for most sizes."""
    n = z.size // 24 * 24
    y.reshape(-1)[:n] = 1 / (1 + np.exp(-z.reshape(-1)[:n]))


@kinds.number(
    "Give it n numbers, and a y full of NaN. Which n leave no NaN behind?",
    "The smallest n that leaves none is a block. 3,456 is a multiple of it, as of many others.",
)
def block_length():
    """Give it 1, 2, 3, … numbers, and count those written: steps of 24, of which 3,456 is 144."""
    return 24
