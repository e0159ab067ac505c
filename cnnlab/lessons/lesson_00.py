"""Lesson 00: pictures of the network, times of its steps and layers, and the exercises."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.kernels import loops
from cnnlab.measure import bench, machine, timing
from cnnlab.measure.timing import Timing
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import INK, LAYERS, WRONG, figure, note, style
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
    row, column, size and numbers in a row; a line joins two.
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
        ax.add_patch(plt.Rectangle((x, y), side, side, fill=False, ec=WRONG, lw=2))
        centres.append((x + side / 2, y + side / 2))
    ax.plot(*np.reshape(centres, (-1, 2)).T, color=WRONG, lw=1.5)
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
    p, q = np.unravel_index(values[1][0].argmax(), (24, 24))
    window, one = ("image", 0, p, q, 5, 28), ("convolution", 0, p, q, 1, 24)
    four = "convolution", 0, p // 4 * 4, q // 4 * 4, 4, 24
    pooled, best = ("pooling", 0, p // 4, q // 4, 1, 6), int(values[3].argmax())
    out, work = ("fully connected", best, 0, 0, 1, 1), NET.multiply_adds
    conv, pool, dense = np.cumsum([work[f"{name}_forward"] for name in ("conv", "pool", "dense")])
    back = dense + work["dense_backward_weights"] + work["dense_backward_input"]
    frames = [  # layers filled, gradients from, windows, multiply-adds so far, what happens
        (1, 9, [window, one], 25, "25 pixels times 25 weights: one number of a map."),
        (2, 9, [four, pooled], conv + 16, "Six maps. 16 numbers times 16 weights: one number."),
        (3, 9, [pooled, out], pool + 216, f"Six small maps. Output {best} weighs all 216 numbers."),
        (4, 9, [], dense, f"Ten outputs. The largest says {best}."),
        (4, 3, [], dense, f"Backward: the errors, output minus 1 at label {label}, else minus 0."),
        (4, 2, [out, pooled], back, "Errors times weights: gradients of the pooling."),
        (4, 1, [one, window], sum(work.values()), "To each window: those of maps and filters."),
    ]
    pages = []
    for n, since, windows, *_ in frames:
        shown = [values[k] if k < since else grads[k - 1] for k in range(n)] + [None] * (4 - n)
        with style():
            pages.append(Figure((6.4, 2.2)))
            draw(pages[-1].add_subplot(), shown, since, windows)
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


def layer_times(without_vectors: Callable) -> dict[str, Timing]:
    """Forward passes of `loops`, and of its convolution compiled by `without_vectors`."""
    names = {layer: f"{key}_forward" for key, layer in bench.LAYERS.items()}
    calls = {layer: bench.layer_call("loops", name, BATCH) for layer, name in names.items()}
    arrays, options = bench.layer_arguments("conv_forward", BATCH)
    plain = without_vectors(loops.conv_forward, *arrays, *options)
    bench.checked("conv_forward", "loops without vectors", plain, arrays, options)
    calls["convolution, no vectors"] = lambda: plain(*arrays, *options)
    return timing.compare(calls, repeats=31)


# --- the exercises --------------------------------------------------------------------------------


@kinds.number(
    "Each layer has weights and biases: six arrays. A filter has 5 × 5 weights for each channel.",
    "After the convolution, maps have 28 × 28 numbers, after the pooling 7 × 7: 294 in all.",
)
def parameters():
    """Three channels triple the filters' weights; larger images only those of the last layer."""
    return (6 * 3 * 5 * 5 + 6) + (6 * 4 * 4 + 6) + (10 * 6 * 7 * 7 + 10)


@kinds.kernel(
    "sigmoid",
    "Like sigmoid_backward, with another line in the loop: np.exp takes a number, too.",
    "NaN is what a y holds before the call: does the loop reach every number?",
)
def sigmoid_kernel(z, y):
    """In plain NumPy; as a loop, with a float32 one, it is the kernel of `loops`."""
    with np.errstate(over="ignore"):
        y[:] = 1 / (1 + np.exp(-z))


@kinds.kernel(
    "dense_backward_bias",
    "The verdict names a factor: by what does it differ from shape to shape?",
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
    """3,456 is 144 blocks of 24: a check at that size alone sees nothing."""
    return 24
