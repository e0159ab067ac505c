"""The exercises of a lesson's notebook: which cell takes an answer, which one checks it.

Notebooks of an assignment have answer and check in cells of their own, and skeletons to which a
solution only adds lines.
"""

import copy
import re
from dataclasses import dataclass

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from cnnlab.course import durations, parts, shape

CALL = re.compile(r"^exercise\.(\w+)\((\w+)\);?$", re.MULTILINE)
ONE_LINE = re.compile(r"^(def .*\)): \.\.\.(.*)$", re.MULTILINE)  # def f(x): ...  # comment


@dataclass(frozen=True)
class Asked:
    """An exercise in a notebook: what it is called, and the numbers of its two cells.

    `variable` is what the answer is called in the notebook, `points` are the marks ● of the text.
    """

    lesson: str
    name: str
    variable: str
    points: int
    answer: int
    check: int


def separated(nb: NotebookNode) -> NotebookNode:
    """A copy of a lesson in which each answer and each check has a cell of its own.

    A function in one line, `def f(x): ...`, gets a second one, below which lines can be added.
    """
    nb, cells = copy.deepcopy(nb), []
    for cell in nb.cells:
        found = CALL.search(cell.source) if cell.cell_type == "code" else None
        if found:  # how long both took together is true of neither
            cell.source = durations.told(cell.source, 0)
            found = CALL.search(cell.source)
        if found and (skeleton := cell.source[: found.start()].strip()):
            cells.append(new_code_cell(ONE_LINE.sub(r"\1:\2\n    ...", skeleton)))
            cell.source = cell.source[found.start() :]
        cells.append(cell)
    nb.cells = cells
    return nb


def exercises(nb: NotebookNode, name: str) -> list[Asked]:
    """The exercises of a `separated` lesson, such as "05_one_core", in order.

    Raises ValueError where no cell with an answer comes before a check, or no mark.
    """
    found, marks, before = [], "", None
    for number, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            for _, rest in shape.EXERCISE.findall(cell.source):
                marks = rest.split()[0] if rest.strip() else ""
            continue
        if called := CALL.search(cell.source):
            if before is None or set(marks) != {"●"}:
                what = "an answer and a mark ● before it" if before is None else f"●, got {marks!r}"
                raise ValueError(f"{name}: exercise {called[1]}: expected {what}")
            lesson = parts.number(name)
            found.append(Asked(lesson, called[1], called[2], len(marks), before, number))
            before = None
        else:
            before = number
    return found
