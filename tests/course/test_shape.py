"""The shape of a lesson: what its head, its foot and its exercises owe to the student."""

import re
from collections.abc import Iterator

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnnlab.course import answers, parts

HEAD = (
    r"^\*\*Time:\*\* about \d+ minutes",
    r"^\*\*You need:\*\* \S",
    r"^\*\*Afterwards you can:?\*\*\n+(?:- .+\n?){2,}",
)
FOOT = "Three questions", "Two things to read"
EXERCISE = re.compile(r"^\*\*(\d+)(.*)", re.MULTILINE)  # "**1 ●● Count.** How many …"
# Checks that take the expected answer from the cell, where the student sees it.
IN_SIGHT = re.compile(r"\b(exercise|differences|Verdict)\(")
FIRST_CHALLENGE = "05"


def gaps(nb: NotebookNode, name: str) -> Iterator[str]:
    """Yield a word for each part of its shape that the lesson of that name lacks.

    head : how long it takes, what one needs to know, what one will be able to do
    foot : three questions, and two things to read
    predictions : two to four that `check.predict` compares
    answers : no expected value and no check in sight, the model answers folded away
    marks : ●, ●● or ●●● on every exercise
    order : the exercises come in that of the model answers
    challenge : one, from lesson 05 on
    glossary : a link to it
    """
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    first = nb.cells[0].source if nb.cells else ""
    if not all(re.search(pattern, first, re.MULTILINE) for pattern in HEAD):
        yield "head"
    below = (text.partition(f"## {title}\n")[2].partition("\n#")[0] for title in FOOT)
    asked, to_read = (re.findall(r"^(?:\d\.|-) \S", part, re.MULTILINE) for part in below)
    if (len(asked), len(to_read)) != (3, 2):
        yield "foot"
    if not 2 <= len(re.findall(r"\bpredict\(\s*[\"'f]", code)) <= 4:
        yield "predictions"
    tail = after(nb, "## Exercises")
    tags = [tag for cell in tail for tag in cell.metadata.get("tags", [])]
    checks = "\n".join(cell.source for cell in tail if cell.cell_type == "code")
    if "answers" not in tags or IN_SIGHT.search(checks):
        yield "answers"
    asked = EXERCISE.findall("\n".join(c.source for c in tail if c.cell_type == "markdown"))
    marked = [re.match(r" ●{1,3} \S", rest) for _, rest in asked]
    if not all(marked) or len(marked) != len(answers.of_lesson(name)):
        yield "marks"
    own = answers.exercises(answers.own_file(name))
    shown = [checks.find(f"lesson.{each.name}(") for each in own]
    if shown != sorted(shown):
        yield "order"
    if parts.number(name) >= FIRST_CHALLENGE and not re.search(r"\bchallenge(_\w+)?\(", code):
        yield "challenge"
    if "](glossary.md#" not in text:
        yield "glossary"


def after(nb: NotebookNode, heading: str) -> list[NotebookNode]:
    """The cells from that heading on; all if there is none."""
    numbers = (n for n, cell in enumerate(nb.cells) if heading in cell.source)
    return nb.cells[next(numbers, 0) :]


PATHS = sorted(parts.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: parts.number(path.stem))
def test_a_lesson_has_its_shape(path):
    assert not list(gaps(nbformat.read(path, as_version=4), path.stem))


def test_a_lesson_with_nothing_of_it_lacks_everything():
    code = new_code_cell("check.prove('a', 1)")
    nb = new_notebook(cells=[new_markdown_cell("# 05"), code, new_markdown_cell("**1 One.**")])
    lacking = "head foot predictions answers marks challenge glossary".split()
    assert list(gaps(nb, "05_one_core")) == lacking
