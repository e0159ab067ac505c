"""What a figure shows, in words: the alternative text of its image."""

from matplotlib.axes import Axes
from matplotlib.category import StrCategoryFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter

MOST_LABELS = 12  # of one panel that are read out


def describe(page: Figure, drawing: str) -> None:
    """Give a figure its alternative text, see `description`. Those of `cnnlab.show` have theirs.

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
            told = ", ".join(filter(None, [axis.get_label_text(), *names]))
            parts.append(f"{side}: {told}" if told else "")
    labels = [text.get_text() for text in ax.texts if text.get_text()]
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    parts.append(f"Labels: {', '.join(labels[:MOST_LABELS])}{more}" if labels else "")
    return ". ".join(filter(None, parts))
