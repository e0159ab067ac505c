"""Lesson 00: a pass through the network as pictures, and the exercises."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cnnlab.check import kinds
from cnnlab.plots import stepper, style

CAPTIONS = (
    "An image: 784 pixels.",
    "Convolution: 25 pixels and 25 weights make a number. Six maps, 156 parameters.",
    "Pooling: 16 numbers and 16 weights make a number. Six maps, 102 parameters.",
    "Fully connected: all 216 numbers make each output. 2,170 parameters.",
    "Backward: outputs minus label go back the same way, to a gradient for each parameter.",
)
WINDOWS = {1: ((0, 11, 5), (1, 11, 1)), 2: ((1, 8, 4), (2, 2, 1))}  # of a stage: panel, place, size


def one_pass(x, maps, pooled, outputs, label: int):
    """Step an image (28, 28) through maps (6, 24, 24) and (6, 6, 6) to ten outputs, and back."""
    arrays = x, np.block([[*maps[:3]], [*maps[3:]]]), np.block([[*pooled[:3]], [*pooled[3:]]])
    frames = []
    for stage in range(len(CAPTIONS)):
        with style.style():
            page = Figure((7.6, 2.2))
            axes, back = page.subplots(1, 4), stage == 4
            for ax, a, name in zip(axes, arrays, ("image", "convolution", "pooling"), strict=False):
                ax.imshow(a, cmap="gray_r", vmin=0, vmax=a.max(), visible=ax in axes[: stage + 1])
                ax.set(xticks=[], yticks=[], title=name)
            for panel, at, size in WINDOWS.get(stage, ()):
                look = {"fill": False, "ec": style.COLORS["device"], "lw": 2}
                axes[panel].add_patch(Rectangle((at - 0.5, at - 0.5), size, size, **look))
            shown = outputs * (stage >= 3) - back * (np.arange(10) == label)
            axes[3].barh([*"0123456789"], shown, color=style.OTHERS[0])
            title = "outputs" + back * " − label"
            axes[3].set(xlim=(-1.05 * back, 1.05), ylim=(9.5, -0.5), title=title)
        frames.append(page)
    return stepper.stepper(frames, title="One image, one pass", captions=CAPTIONS)


@kinds.number(
    "Each layer has weights and biases: six arrays in all. Have you counted all six?",
    "Filters: 6 · 1 · 5 · 5 weights, 6 biases. Pooling: a kernel of 4 × 4 and a bias for each of "
    "six maps. The last layer: a weight for each of 216 inputs, for each of 10 outputs; 10 biases.",
)
def parameters():
    """2,160 of them belong to the last layer's weights."""
    return (6 * 1 * 5 * 5 + 6) + (6 * 4 * 4 + 6) + (10 * 216 + 10)


@kinds.kernel(
    "dense_forward",
    "Which axis of x and of w runs over the inputs? `@` sums over the last of x, the first of w.",
    "x is (N, I), w is (O, I), so w has to be turned: x @ w.T is (N, O). Write into z[:].",
)
def outputs(x, w, b, z):
    """A product of matrices; NumPy adds the same b to each row of it."""
    z[:] = x @ w.T + b


@kinds.kernel(
    "dense_backward_bias",
    "The verdict names a factor: by what does it differ from shape to shape?",
    "A mean is the sum, divided by the number of images. The formula does not divide. And a kernel "
    "returns nothing: it writes into its last argument, db[:] = …",
)
def bias_gradient(dz, db):
    """The slice writes into the array that db names; `db = …` would only give a name to another."""
    db[:] = dz.sum(axis=0)


@kinds.tested(
    lambda n: f"with {n} images, both agree" * (n % 64 == 0),
    "Which images does the fast one never see? It takes whole batches of 64 only.",
)
def images():
    """The last, smaller batch is left out: less work is no speedup."""
    return 4097
