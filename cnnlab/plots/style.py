"""What a figure shows, in words: the alternative text of its image."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.category import StrCategoryFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter

from cnnlab.kernels import KERNELS
from cnnlab.measure import machine

MOST_LABELS = 12  # of one panel that are read out


def describe(page: Figure, drawing: str) -> None:
    """Give a figure its alternative text, see `description`. Those of `cnnlab.plots` have theirs.

    Jupyter asks an object for a bundle of formats and what it says of each: this one adds no format
    and one word about the image that the notebook's backend makes.
    """
    page._repr_mimebundle_ = lambda include=None, exclude=None: (
        {},
        {"image/png": {"alt": description(page, drawing)}},
    )


def description(page: Figure, drawing: str) -> str:
    """The title of a figure, then each panel's axes and labels; `drawing` where it has no title.

    One line without quotation marks, which would end an attribute.
    """
    title = page.get_suptitle() or drawing[:1].upper() + drawing[1:]
    panels = [panel(ax) for ax in page.axes if ax.get_visible()]
    text = ". ".join(part.strip(" .") for part in (title, *panels) if part)
    return " ".join(text.replace('"', "'").split()) + "."


def panel(ax: Axes) -> str:
    """One panel: its title, what its axes stand for, the names along them, the labels in it."""
    parts = [ax.get_title()]
    if ax.axison:
        for side, axis in (("Horizontal", ax.xaxis), ("Vertical", ax.yaxis)):
            named = isinstance(axis.get_major_formatter(), StrCategoryFormatter | FixedFormatter)
            names = [tick.get_text() for tick in axis.get_ticklabels()] if named else []
            said = ", ".join(filter(None, [axis.get_label_text(), *names]))
            parts.append(f"{side}: {said}" if said else "")
    labels = [text.get_text() for text in ax.texts if text.get_text()]
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    parts.append(f"Labels: {', '.join(labels[:MOST_LABELS])}{more}" if labels else "")
    return ". ".join(filter(None, parts))


# --- the style of every figure: colours, title and caption, labels beside the data ----------------

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
