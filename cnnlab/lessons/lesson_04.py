"""The exercises of lesson 04, and its drawings."""

from collections.abc import Mapping

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
from cnnlab.plots.style import GREY, INK, WRONG, colors, label_ends, measured, style


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


def one_step(params: Parameters, images, labels, batch: int, rate: float) -> Stepper:
    """A stepper: shuffle, forward, backward, move. `params` move along."""
    chosen = np.random.default_rng(1).permutation(len(images))[:batch]
    start, some = params.copy(), (images[:512], labels[:512])
    own, g = mean_gradient(params, images[chosen], labels[chosen])
    before, full = mean_gradient(params, *some)
    arrows = -np.float32(rate) * np.stack([g, full], 1)
    params.flat += arrows[:, 0]
    after, lengths = mean_gradient(params, *some)[0], np.linalg.norm(arrows, axis=0)
    captions = [
        f"{len(images):,} images are shuffled. Loss of 512 images: {before:.2f}.",
        f"Images {chosen[0]}, {chosen[1]}, … forward: their mean loss is {own:.2f}.",
        "Backward. Minus rate × mean gradient: {:.3f} long; dotted: of 512 images, {:.3f}.".format(
            *lengths
        ),
        f"θ moves along the solid arrow. Loss of 512 images: {after:.2f}.",
    ]
    plane = np.linalg.qr(arrows[:, ::-1])[0]  # of both arrows, so that both have their lengths
    tips = arrows.T @ plane
    plane, tips = plane * np.sign(tips[0]), tips * np.sign(tips[0])
    u = np.linspace(-0.2, 1.3, 15) * tips.max()
    heights, copy = np.empty((15, 15)), start.copy()
    for i, j in np.ndindex(15, 15):
        copy.flat[:] = start.flat + plane @ np.float32([u[j], u[i]])
        heights[i, j] = mean_gradient(copy, *some)[0]
    pages = [contours(u, heights, tips, event) for event in range(4)]
    return stepper(pages, title="One step of gradient descent", captions=captions)


def contours(u, heights, tips, event) -> Figure:
    """A frame: the loss on a plane through the parameters, and both arrows or the step."""
    with style():
        page = Figure((3.4, 3))
        ax = page.add_subplot()
        ax.clabel(ax.contour(u, u, heights, 6, colors=GREY, linewidths=0.8), fontsize=7)
        ax.plot(*np.transpose([(0, 0), tips[0]][: 1 + event // 3]), "o-", color=INK, markersize=5)
        for to, color, line in zip(tips, (WRONG, INK), "-:", strict=True):
            look = {"arrowstyle": "->", "lw": 2, "linestyle": line, "color": color}
            if event == 2:
                ax.annotate("", to, (0, 0), arrowprops=look)
        ax.set(xlabel="along −gradient of 512 images", ylabel="across it", aspect="equal")
        ax.locator_params(nbins=4)
    return page


def mean_gradient(params: Parameters, x, t) -> tuple[float, np.ndarray]:
    """The mean loss of some images and its gradient."""
    grads = params.network.zeros()
    loss = loss_and_gradients(KERNELS["vector"], params, x, t, grads)
    return loss / len(x), grads.flat / np.float32(len(x))


@measured
def over_seconds(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], target: float) -> Axes:
    """Draw losses (runs, points) over seconds (points): the median, and the range of the runs."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    labels, end = [], min(x[-1] for x, _ in curves.values())
    for (name, (x, losses)), color in zip(curves.items(), colors(list(curves)), strict=True):
        shown = x <= max(end, x[0])
        x, losses = x[shown], losses[:, shown]
        ax.fill_between(1e3 * x, losses.min(0), losses.max(0), color=color, alpha=0.2, lw=0)
        ax.plot(1e3 * x, np.median(losses, 0), color=color)
        labels.append((1e3 * x[-1], np.median(losses[:, -1]), name, color))
    ax.axhline(target, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel="milliseconds of training steps", ylabel="loss of an image", ylim=(0, None))
    label_ends(ax, labels)
    return ax
