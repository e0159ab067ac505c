"""The exercises of lesson 04, a step of `vector` in parts, and drawings."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.check.verdict import differences
from cnnlab.kernels import KERNELS, steps
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import Network, Parameters
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import GREY, INK, WRONG, colors, figure, label_ends, measured


def suspect_epoch(params, images, labels, batch, rate, rng) -> float:
    """One epoch of SGD with a fault: the mean loss of an image."""
    total, order = 0.0, rng.permutation(len(images))
    for chosen in np.split(order, range(batch, len(images), batch)):
        loss, g = mean_gradient(params, images[chosen], labels[chosen])
        total += len(chosen) * loss
        params.flat -= np.float32(rate * len(chosen) / batch) * g
    return total / len(images)


@kinds.choice(
    ("last batch left out", "divided by the full batch", "joined to another", "never shuffled"),
    "With 304 images, all batches are full. With 300, 12 images are left over.",
    "Now an epoch of these 12 alone. How far does each move the parameters?",
)
def cause():
    """304 images are 19 full batches: nothing shows, and shuffling is right. In an epoch of 12
    images it goes 12/16 as far: it divides their sum by the full batch."""
    return "divided by the full batch"


def wrong_accumulation(step) -> str:
    """What is wrong with a step in pieces, against that of the whole batch; "" if nothing is."""
    images = kinds.generator().uniform(0, 1, (53, 1, 28, 28)).astype(np.float32)
    labels = kinds.generator().integers(0, 10, 53)
    for n, piece in ((48, 16), (53, 16), (16, 16), (5, 16)):
        x, t, params = images[:n], labels[:n], Network().parameters(0)
        loss, g = mean_gradient(params, x, t)
        expected, got = params.flat - 0.4 * g, step(params, x, t, piece, 0.4)
        wrong = differences("params", params.flat, expected, np.full(g.size, 2e-5))
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
    update(*reversed(got.values()), rate=0.1, mu=0.9)
    wrong = (differences(k, got[k], expected[k], np.full(1000, 1e-6)) for k in expected)
    return next(filter(None, wrong), "")


@kinds.tested(
    wrong_step,
    "Both arrays must change in place: v *= …, or v[:] = …; a plain v = … only renames.",
    "First the velocity, all of it: v becomes mu · v + g. Then theta, with the new v.",
)
def momentum(theta, v, g, rate, mu):
    """Try a tenth of the rate: equal gradients add up to g / (1 − μ). For 64 to be as soon, it must
    need about a quarter of the steps of 16: count them."""
    v *= mu
    v += g
    theta -= rate * v


def step_in_parts(params, grads, x, t) -> dict[str, list[tuple[str, Callable]]]:
    """What a step of `vector` on images (M,C,H,W) calls, as lists of (part, call).

    "real" goes layer by layer, "linear" without sigmoids, "idle" through layers that do nothing;
    "whole" is one compiled call, "rest" that without the convolution, "empty" that of no images.
    """
    real, tables = steps.programme(params.network)[:2]
    linear, idle = real.copy(), np.zeros_like(real)
    linear["activation"] = linear["through"] = 0
    idle["w"] = idle["dx"] = -1  # there are none
    w, g, some, own = params.flat, grads.flat, np.arange(len(x)), steps.memory("04", params.network)
    images, lists, names = x.reshape(len(x), -1), {}, ("convolution", "pooling", "dense")
    for kind, rows in {"real": real, "linear": linear, "idle": idle}.items():
        pixels = images[:, :0] if kind == "idle" else images
        lists[kind] = [("add up", partial(array.fill, 0)) for array in (g, own.sums)]
        for block in np.split(some, range(steps.BLOCK, len(x), steps.BLOCK)):
            n, arrays = steps.vectors(len(block)), (w, g, own.flat, own.sums)
            up = [partial(steps.forward, row, w, own.flat, tables, n) for row in rows]
            down = [partial(steps.backward, row, *arrays, tables, n) for row in rows[:2]]
            load = partial(steps.forward_block, rows[:0], tables, w, pixels, t, block, own)
            turn = partial(steps.backward_block, rows[2:], tables, w, g, len(block), own)
            calls = load, *up, turn, *down[::-1]
            lists[kind] += zip(("load", *names, *names[::-1]), calls, strict=True)
        lists[kind].append(("add up", partial(steps.add_lanes, rows, own.sums, g)))
    compiled = {"whole": (real, some), "rest": (real[1:], some), "empty": (real, some[:0])}
    for kind, (rows, chosen) in compiled.items():
        call = partial(steps.gradients, rows, tables, w, g, images, t, chosen, own, None)
        lists[kind] = [("all", call)]
    return lists


def one_step(params: Parameters, images, labels, batch: int, rate: float) -> Stepper:
    """A stepper: the loss on a plane through the parameters, and a step there, which they take."""
    chosen = np.random.default_rng(1).permutation(len(images))[:batch]
    some, copy = (images[:512], labels[:512]), params.copy()
    both = (images[chosen], labels[chosen]), some
    gradients = [mean_gradient(params, x, t)[1] for x, t in both]
    arrows = -np.float32(rate) * np.stack(gradients, 1)
    plane = np.linalg.qr(arrows[:, ::-1])[0]  # of both arrows, so that both have their lengths
    plane *= np.sign(arrows[:, 0] @ plane)
    tips = arrows.T @ plane
    u = np.linspace(-0.2, 1.3, 11) * tips.max()
    moves, losses = [plane @ np.float32([right, up]) for up in u for right in u], []
    for move in (0, *arrows.T, *moves):
        copy.flat[:] = params.flat + move
        losses.append(mean_gradient(copy, *some)[0])
    heights = np.reshape(losses[3:], (11, 11))
    params.flat += arrows[:, 0]

    def draw(ax: Axes, n_arrows: int) -> None:
        ax.clabel(ax.contour(u, u, heights, 6, colors=GREY, linewidths=0.8), fontsize=7)
        ax.plot(0, 0, "o", color=INK)
        for (right, up), color in list(zip(tips, (WRONG, INK), strict=True))[:n_arrows]:
            ax.quiver(0, 0, right, up, color=color, angles="xy", scale_units="xy", scale=1)
        ax.set(xlabel="along −gradient of 512 images", ylabel="across it", aspect="equal")

    captions = (
        f"Parameters, and lines of equal loss of 512 images; here it is {losses[0]:.2f}.",
        f"Orange: −{rate:g} times the gradient of {batch} images leads to {losses[1]:.2f}.",
        f"Black: the same of all 512 images leads to {losses[2]:.2f}. SGD takes the orange step.",
    )
    frames = [partial(draw, n_arrows=n) for n in range(3)]
    return stepper(frames, title="One step, by two gradients", captions=captions)


def mean_gradient(params: Parameters, x, t) -> tuple[float, np.ndarray]:
    """The mean loss of some images and its gradient."""
    grads = params.network.zeros()
    loss = loss_and_gradients(KERNELS["vector"], params, x, t, grads)
    return loss / len(x), grads.flat / np.float32(len(x))


@figure
def learning_curves(
    histories: Mapping[str, Sequence[Mapping]], titles: Sequence[str]
) -> np.ndarray:
    """Draw loss and accuracy over the `epoch` of histories' rows, under `titles`."""
    _, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    for ax, what, said in zip(axes, ("loss", "accuracy"), titles, strict=True):
        labels = []
        for k, (name, color) in enumerate(zip(histories, colors(list(histories)), strict=True)):
            width = 0.5 + 1.5 * (len(histories) - k)  # equal curves stay visible
            x, y = np.array([(row["epoch"], row[what]) for row in histories[name]]).T
            ax.plot(x, y, "o-", color=color, linewidth=width, markersize=width + 1)
            labels.append((x[-1], y[-1], name, color))
        ax.locator_params(axis="x", nbins=4, integer=True)
        ax.set(xlabel="epoch", ylabel=said, ylim=(0 if what == "loss" else None, None))
        label_ends(ax, labels)
    axes[1].yaxis.set_major_formatter("{x:.1%}")
    return axes


@measured
def over_seconds(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], target: float) -> Axes:
    """Draw losses (runs, points) over seconds (points): the median, and the range of the runs."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    for (name, (x, losses)), color in zip(curves.items(), colors(list(curves)), strict=True):
        ax.fill_between(1e3 * x, losses.min(0), losses.max(0), color=color, alpha=0.2, lw=0)
        ax.plot(1e3 * x, np.median(losses, 0), color=color, label=name)
    ax.axhline(target, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel="milliseconds of training steps", ylabel="loss of an image", ylim=(0, 4.5))
    ax.legend(frameon=False)
    return ax
