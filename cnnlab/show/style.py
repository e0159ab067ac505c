"""The style of every figure: colours, title and caption, labels beside the data.

A strategy has the same colour everywhere. The palette is that of Okabe and Ito, whose colours
colour-blind readers can tell apart.
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.bench import machine
from cnnlab.kernels import KERNELS
from cnnlab.show.description import describe

HUES = ("#7f7f7f", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#d55e00")
HUES += ("#332288", "#882255", "#999933", "#117733")  # for strategies to come
COLORS = {"torch": "#56b4e9"} | dict(zip(KERNELS, HUES, strict=False))
WAY_COLORS = {"im2col": "#e69f00", "FFT": "#009e73", "Winograd": "#cc79a7"}  # to convolve
BASES = {name: HUES[0] for name in ("one rank", "one core")}  # others are set beside it
OTHERS = ("#7b5ea7", "#8c564b", "#2f8f8f", "#b8860b", "#4c6a92", "#5f7f3f")
OTHERS += ("#b5446e", "#5aa0c8")
OF_SCHEDULES = "rabenseifner", "tree", "butterfly", "ring", "MPI"
SCHEDULE_COLORS = dict(zip(OF_SCHEDULES, OTHERS, strict=False))
LAYERS = ("#23527c", "#7fb0d8", "#d5e3ef", "#f0dfbd", "#d49a4e", "#8f5a22")
SIGMOID = LAYERS[4]
INK, GREY, WRONG = "#222222", "#737373", "#d55e00"
STYLE = {
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
}
ERRORS = {"elinewidth": 1.2, "capsize": 3}
Point = tuple[float, float]


def style() -> AbstractContextManager:
    """A context in which figures of your own have this style."""
    choose_backend()
    return plt.rc_context(STYLE)


@functools.cache
def choose_backend() -> None:
    """Choose the backend before the context: one chosen inside would not stay interactive."""
    plt.switch_backend(plt.get_backend())


def colors(names: Sequence[str]) -> list[str]:
    """The colour of each name: that of a strategy, a way, a schedule or a base, others in order."""
    own = COLORS | WAY_COLORS | SCHEDULE_COLORS | BASES
    others = [name for name in dict.fromkeys(names) if name not in own]
    return [own.get(n) or OTHERS[others.index(n) % len(OTHERS)] for n in names]


def aside(k: int, n: int) -> float:
    """By how much series k of n moves its points on a logarithmic axis, to cover no other's."""
    return 1.03 ** (k - n // 2)


def part_colors(names: Sequence[str]) -> list[str]:
    """A colour for each part of a whole, in order; the sigmoid has its own in every figure."""
    others = cycle(color for color in LAYERS if color != SIGMOID)
    return [SIGMOID if name == "sigmoid" else next(others) for name in names]


def figure(draw: Callable, default: str | None = "") -> Callable:
    """A function that draws in this style, then adds `title` and `caption`.

    The caption is the small line below the figure; None stands for the machine. In a notebook the
    figure has an alternative text, see `description`.
    """

    @functools.wraps(draw)
    def wrapper(*args, title: str = "", caption: str | None = default, **kwargs):
        with style():
            axes = draw(*args, **kwargs)
            page, left = np.ravel(axes)[0].figure, {"x": 0.01, "ha": "left"}
            if title:
                page.suptitle(title, **left, fontsize=12, weight="bold")
            if caption != "":
                page.supxlabel(caption or machine.caption(), **left, fontsize=7, color=GREY)
            describe(page, str(draw.__doc__).partition("\n")[0].removeprefix("Draw "))
        return axes

    return wrapper


measured = functools.partial(figure, default=None)  # a figure of measurements names the machine


def label_ends(ax: Axes, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each (x, y, text, colour) to the right of the axes, with a line from its point.

    The limits of the axes must be final.
    """
    to_axes = ax.transData + ax.transAxes.inverted()
    height = np.array([to_axes.transform(label[:2])[1] for label in labels])
    order, gap = height.argsort(), 0.23 / ax.figure.get_figheight()
    spots = height[order]
    for _ in range(200):  # push neighbours apart until all have room
        push = np.maximum(gap - np.diff(spots), 0) / 2
        spots += np.append(0, push) - np.append(push, 0)
    for k, spot in zip(order, spots, strict=True):
        *point, text, color = labels[k]
        look = {"color": color, "va": "center", "annotation_clip": False}
        line = {"arrowstyle": "-", "color": color, "lw": 0.7, "alpha": 0.6, "shrinkB": 4}
        line["relpos"] = (0, 0.5)  # from where the text begins, not through its neighbours
        ax.annotate(text, point, (1.03, spot), "data", "axes fraction", arrowprops=line, **look)


def as_rows(ax: Axes, names: Sequence[str]) -> Axes:
    """Put horizontal bars in order from top to bottom, with only their names on the axis."""
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    return ax


def note(ax: Axes, text: str, at: Point, offset: Point, **look) -> None:
    """Write text at a point, `offset` points away from it."""
    ax.annotate(text, at, offset, textcoords="offset points", **look)
