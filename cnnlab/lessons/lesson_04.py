"""The exercises of lesson 04, and its drawings."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.check.verdict import differences
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import Network, Parameters
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import GREY, INK, WRONG, colors, figure, label_ends, measured, style

PLATEAU = 3.2508  # -ln 1/10 - 9 ln 9/10: the loss of an image where all outputs are 1/10


def suspect_epoch(params, images, labels, batch, rate, rng) -> float:
    """One epoch of SGD with a fault: the mean loss of an image."""
    total, order = 0.0, rng.permutation(len(images))
    for chosen in np.split(order, range(batch, len(images), batch)):
        loss, g = mean_gradient(params, images[chosen], labels[chosen])
        total += len(chosen) * loss
        params.flat -= np.float32(rate * len(chosen) / batch) * g
    return total / len(images)


@kinds.choice(
    ("last batch left out", "divided by the full batch", "never shuffled", "rate too small"),
    "Equal losses: the same images were seen, in the same order. What happened after the last one?",
    "Of 300 images, 12 are left for the last batch; of 304, none. Whose mean is taken there?",
)
def cause():
    """The last gradient is the sum of 12 images, divided by 16: that step is a quarter short."""
    return "divided by the full batch"


def wrong_accumulation(step) -> str:
    """What is wrong with a step in pieces, against that of the whole batch; "" if nothing is."""
    images = kinds.generator().uniform(0, 1, (53, 1, 28, 28)).astype(np.float32)
    labels = kinds.generator().integers(0, 10, 53)
    for n, piece in ((48, 16), (53, 16), (16, 16), (5, 16)):
        x, t, params = images[:n], labels[:n], Network().parameters(0)
        loss, g = mean_gradient(params, x, t)
        expected, room = params.flat - 0.4 * g, np.full(g.size, 2e-5)
        got = step(params, x, t, piece, 0.4)
        wrong = differences("params", params.flat, expected, room)
        if not wrong and (got is None or abs(got - loss) > 1e-4 * loss):
            wrong = f"expected the mean loss {loss:.4f}, got {got}"
        if wrong:
            return f"{n} images in pieces of {piece}: {wrong}"
    return ""


@kinds.tested(
    wrong_accumulation,
    "loss_and_gradients overwrites `grads`: add them up in an array of your own.",
    "Update once, after the last piece, which may be smaller: divide by all images of the batch.",
)
def accumulated(params, x, t, piece, rate):
    """Gradient accumulation: memory for one piece, and the step of the whole batch."""
    grads, total, loss = params.network.zeros(), params.network.zeros(), 0.0
    for first in range(0, len(x), piece):
        some = slice(first, first + piece)
        loss += loss_and_gradients(KERNELS["vector"], params, x[some], t[some], grads)
        total.flat += grads.flat
    params.flat -= rate / len(x) * total.flat
    return loss / len(x)


RANGES = {"fixed": (1e-6, 1e-3), "per_image": (1e-7, 1e-5), "noise": (5, 500)}


@kinds.formula(
    lambda rng: {name: rng.uniform(*ends) for name, ends in RANGES.items()},
    "Seconds = steps × seconds of a step, as a function of B. Where is its derivative zero?",
    "(1 + noise / B) (fixed + per_image · B): two of the four terms depend on B.",
    rtol=1e-3,
)
def best_batch(fixed, per_image, noise):
    """The costlier a step's start, the larger the batch; that is why GPUs like large ones."""
    return (noise * fixed / per_image) ** 0.5


def wrong_step(update) -> str:
    """What is wrong with a step of momentum, against the same in float64; "" if nothing is."""
    theta, v, g = kinds.generator().uniform(-1, 1, (3, 1000))
    expected = {"g": g, "v": 0.9 * v + g, "theta": theta - 0.1 * (0.9 * v + g)}
    got = dict(zip(expected, np.float32([g, v, theta]), strict=True))
    update(*reversed(got.values()), rate=0.1, momentum=0.9)
    wrong = (differences(k, got[k], expected[k], np.full(1000, 1e-6)) for k in expected)
    return next(filter(None, wrong), "")


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


def two_steps(params: Parameters, images, labels, batch: int, rate: float) -> Stepper:
    """A stepper: shuffle, forward, backward, move; then the next batch. `params` move along."""
    order, start = np.random.default_rng(1).permutation(len(images)), params.flat.copy()
    path, some, full = [start], (images[:512], labels[:512]), []
    events = [(0, 0, f"{len(images):,} images are shuffled; θ is where the dot is.")]
    for k in range(2):
        chosen = order[k * batch : (k + 1) * batch]
        own, g = mean_gradient(params, images[chosen], labels[chosen])
        full.append(-np.float32(rate) * mean_gradient(params, *some)[1])
        params.flat -= np.float32(rate) * g
        path.append(params.flat.copy())
        loss, arrows = mean_gradient(params, *some)[0], "Solid: minus rate × their mean; dashed:"
        events += [
            (k, 0, f"Images {chosen[0]}, {chosen[1]}, … forward: their mean loss is {own:.2f}."),
            (k, 1, f"Backward: six arrays of gradients. {arrows} that of all images."),
            (k, 2, f"θ moves by rate × mean gradient. Loss of all: {loss:.2f}."),
        ]
    plane = np.linalg.qr(np.stack([full[0], path[2] - start], 1))[0]
    plane *= np.sign(full[0] @ plane[:, 0])
    spots, full = (np.stack(path) - start) @ plane, np.stack(full) @ plane
    size, copy = 2.2 * abs(np.append(spots, full)).max(), params.copy()
    u, v = np.linspace(-0.3, 0.9, 9) * size, np.linspace(-0.6, 0.6, 9) * size
    heights = np.empty((9, 9))
    for i, j in np.ndindex(9, 9):
        copy.flat[:] = start + plane @ np.float32([u[j], v[i]])
        heights[i, j] = mean_gradient(copy, *some)[0]
    pages = [contours(u, v, heights, spots, full, *event[:2], batch) for event in events]
    title = "Two steps of stochastic gradient descent"
    return stepper(pages, title=title, captions=[event[2] for event in events])


def contours(u, v, heights, spots, full, k, event, batch) -> Figure:
    """A frame: the loss on a plane through the parameters, where theta has been, and an arrow."""
    with style():
        page = Figure((3.4, 2.2))
        ax = page.add_subplot()
        ax.contour(u, v, heights, 6, colors="#bbbbbb", linewidths=0.8)
        ax.plot(*spots[: (steps := k + (event == 2)) + 1].T, "o-", color=INK, markersize=5)
        if event == 1:
            for to, color, line in ((full[k], GREY, "--"), (spots[k + 1] - spots[k], WRONG, "-")):
                look = {"arrowstyle": "->", "lw": 2, "linestyle": line, "color": color}
                ax.annotate("", spots[k] + to, spots[k], arrowprops=look)
        ax.set(xticks=[], yticks=[], title=f"steps: {steps}   images: {steps * batch}")
    return page


def mean_gradient(params: Parameters, x, t) -> tuple[float, np.ndarray]:
    """The mean loss of some images and its gradient."""
    grads = params.network.zeros()
    loss = loss_and_gradients(KERNELS["vector"], params, x, t, grads)
    return loss / len(x), grads.flat / np.float32(len(x))


@figure
def heat_map(losses: Mapping[tuple[int, float], Sequence[float]]) -> Axes:
    """Draw the median loss by batch (row) and rate, and how many runs are on the plateau."""
    batches, rates = (list(dict.fromkeys(key[k] for key in losses)) for k in (0, 1))
    middle = np.array([[np.median(losses[b, r]) for r in rates] for b in batches])
    _, ax = plt.subplots(figsize=(6, 2.6))
    ax.imshow(middle, cmap="YlOrBr", aspect="auto", vmax=1.3 * PLATEAU)
    for (i, j), value in np.ndenumerate(middle):
        stuck = [loss > 0.98 * PLATEAU for loss in losses[batches[i], rates[j]]]
        text = f"{value:.2f}" + f"\n{sum(stuck)} of {len(stuck)} on the plateau" * any(stuck)
        ax.text(j, i, text, ha="center", va="center", fontsize=9, color=INK)
    ax.set_xticks(range(len(rates)), [f"rate {r}" for r in rates])
    ax.set_yticks(range(len(batches)), [f"batch {b}" for b in batches])
    return ax


@measured
def over_seconds(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], target: float) -> Axes:
    """Draw losses (runs, points) over seconds (points): the median, and the range of the runs."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    labels, end = [], min(x[-1] for x, _ in curves.values())
    for (name, (x, losses)), color in zip(curves.items(), colors(list(curves)), strict=True):
        x, losses = x[x <= end], losses[:, x <= end]
        ax.fill_between(1e3 * x, losses.min(0), losses.max(0), color=color, alpha=0.2, lw=0)
        ax.plot(1e3 * x, np.median(losses, 0), color=color)
        labels.append((1e3 * x[-1], np.median(losses[:, -1]), name, color))
    ax.axhline(target, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel="milliseconds of training steps", ylabel="loss of an image", ylim=(0, None))
    label_ends(ax, labels)
    return ax
