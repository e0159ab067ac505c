"""The exercises of lesson 04."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from cnnlab.check import kinds
from cnnlab.check.verdict import differences
from cnnlab.measure.bench import EPOCH, LAYERS, layers
from cnnlab.network import Network
from cnnlab.plots.style import figure


def wrong_step(update) -> str:
    """What is wrong with a step of momentum, against the same in float64; "" if nothing is."""
    theta, v, g = kinds.generator().uniform(-1, 1, (3, 1000))
    velocity = 0.9 * v + g
    expected = {"g": g, "v": velocity, "theta": theta - 0.1 * velocity}
    got = {"g": np.float32(g), "v": np.float32(v), "theta": np.float32(theta)}
    update(got["theta"], got["v"], got["g"], rate=0.1, momentum=0.9)
    wrong = (differences(k, got[k], expected[k], np.full(1000, 1e-6)) for k in expected)
    return next(filter(None, wrong), "")


@kinds.number(
    "The counts were printed for one image. How many images has an epoch?",
    "Add up all eight counts, forward and backward, and multiply by 60,000.",
)
def multiply_adds():
    """The backward pass costs more than the forward pass."""
    return 60_000 * (2 * 86_400 + 3 * 3_456 + 3 * 2_160)


@kinds.number(
    "Without pooling the layer has 3,456 inputs. Multiply-adds forward: one for each weight.",
    "The layer: 3 · 34,560. The convolution: 2 · 86,400. A share lies between 0 and 1.",
    rtol=5e-3,
)
def dense_share():
    """Pooling earns its keep: it makes the next layer small."""
    dense = 3 * (6 * 24 * 24) * 10
    return dense / (2 * 86_400 + dense)


@kinds.tested(
    wrong_step,
    "Both arrays must change in place: v *= …, or v[:] = …; a plain v = … only renames.",
    "First the velocity, all of it: v becomes momentum · v + g. Then theta, with the new v.",
)
def momentum(theta, v, g, rate, momentum):
    """In place, and in this order: theta moves along the new velocity."""
    v *= momentum
    v += g
    theta -= rate * v


# --- the network's work and time by layer: what each counts, what it takes, its share -------------

SIGMOID = "sigmoid"


def layer_shares_multiply_adds() -> dict[str, int]:
    """The multiply-adds of an image in each layer, forward and backward."""
    result = dict.fromkeys(LAYERS.values(), 0)
    for operation, count in Network().multiply_adds.items():
        result[LAYERS[operation.split("_")[0]]] += count
    return result


def seconds(names: Sequence[str], batch: int, repeats: int = 15) -> dict[str, dict[str, float]]:
    """The seconds of an epoch in each layer and in the sigmoid, by strategy: operations added up.

    Each is timed alone, see `measure.layers`; the loss counts as sigmoid.
    """
    result = {name: dict.fromkeys([*LAYERS.values(), SIGMOID], 0.0) for name in names}
    for operation, timings in layers(names, batch, repeats).items():
        layer = LAYERS.get(operation.split("_")[0], SIGMOID)
        for name in names:
            result[name][layer] += timings[name].median * EPOCH / batch
    return result


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Each layer's share of what the three layers take together: a sigmoid does not count."""
    total = sum(parts[layer] for layer in LAYERS.values())
    return {layer: parts[layer] / total for layer in LAYERS.values()}


# --- which digits are taken for which -------------------------------------------------------------


@figure
def confusion(matrix: np.ndarray, class_names: Sequence[str] | None = None) -> Axes:
    """Draw how many images of each true class (row) were classified as each class (column)."""
    from sklearn.metrics import ConfusionMatrixDisplay  # here, because it is slow

    _, ax = plt.subplots(figsize=(5.2, 5))
    display = ConfusionMatrixDisplay(np.asarray(matrix), display_labels=class_names)
    root = {"norm": PowerNorm(0.5, vmin=0)}  # shows rare mistakes
    display.plot(ax=ax, cmap="Blues", colorbar=False, im_kw=root, values_format="d")
    ax.set(xlabel="predicted", ylabel="true")
    ax.grid(visible=False)
    return ax
