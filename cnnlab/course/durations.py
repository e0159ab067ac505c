"""How long slow cells take: a comment in their first line, which rendering writes and removes."""

import math
import re
from datetime import datetime

from nbformat import NotebookNode

SLOW = 5  # seconds; what is quicker says nothing
# Below so many seconds, a cell "takes about" this: coarse, so that a render changes few of them.
ABOUT = {15: "10 s", 30: "20 s", 50: "40 s", 90: "1 min", 180: "2 min", math.inf: "5 min"}
COMMENT = re.compile(r"# takes about (\d+) (s|min)")


def seconds(cell: NotebookNode) -> float:
    """How long a code cell has run, by the times that its execution left in its metadata; else 0.

    nbclient notes them: https://nbclient.readthedocs.io, `record_timing`.
    """
    noted = cell.metadata.get("execution", {})
    names = "iopub.execute_input", "shell.execute_reply"
    if not all(name in noted for name in names):
        return 0.0
    start, end = (datetime.fromisoformat(noted[name]) for name in names)
    return (end - start).total_seconds()


def told(source: str, took: float) -> str:
    """A cell's source with the comment about the seconds that it took, or without one if few.

    The comment comes first, but after a cell magic.
    """
    lines = [line for line in source.split("\n") if not COMMENT.fullmatch(line)]
    if took >= SLOW:
        about = next(text for most, text in ABOUT.items() if took < most)
        lines.insert(lines[0].startswith("%%"), f"# takes about {about}")
    return "\n".join(lines)


def tell(nb: NotebookNode) -> None:
    """Tell of the slow cells of a notebook that was just executed; stamped cells stay."""
    for cell in nb.cells:
        tags = cell.metadata.get("tags", [])
        stamped = "setup" in tags or any(tag.startswith("kernel:") for tag in tags)
        if cell.cell_type == "code" and not stamped:
            cell.source = told(cell.source, seconds(cell))


def noted(nb: NotebookNode) -> int:
    """The seconds that the comments in a notebook's slow cells add up to; 0 if none is slow."""
    lines = (line for cell in nb.cells for line in cell.source.split("\n"))
    found = (COMMENT.fullmatch(line) for line in lines)
    return sum(int(of[1]) * {"s": 1, "min": 60}[of[2]] for of in found if of)
