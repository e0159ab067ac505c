"""A lesson as nbgrader's source: answers between BEGIN and END SOLUTION, checks with points."""

import copy

from nbformat import NotebookNode

from cnnlab.course import lesson
from cnnlab.course.assignment.exercises import CALL, Asked
from cnnlab.course.assignment.solutions import MAGIC, Line, joined

# nbgrader puts a stub in place of a solution. Skeletons need none, and in CUDA C it would not do.
CONFIG = """\
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "cnnlab"
c.ClearSolutions.code_stub = {"python": ""}
c.Execute.timeout = 600  # seconds for a cell; some of the lessons' take half a minute
"""


def source(nb: NotebookNode, answers: dict[Asked, list[Line]]) -> NotebookNode:
    """The notebook for `nbgrader generate_assignment`: a `separated` lesson with its answers."""
    nb = copy.deepcopy(nb)
    for asked, lines in answers.items():
        answer, check = nb.cells[asked.answer], nb.cells[asked.check]
        answer.source = joined(marked(lines))
        answer.metadata.nbgrader = metadata(asked.name, solution=True)
        check.source = asserting(check.source)
        check.metadata.nbgrader = metadata(f"check-{asked.name}", points=asked.points)
    plain = lesson.canonical(nb)
    for cell, old in zip(plain.cells, nb.cells, strict=True):
        if "nbgrader" in old.metadata:
            cell.metadata.nbgrader = old.metadata.nbgrader
    return plain


def metadata(name: str, *, solution: bool = False, points: int | None = None) -> dict:
    """What nbgrader wants to know of a cell: one for an answer, or a check that has points."""
    found = {
        "grade": points is not None,
        "grade_id": name,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return found if points is None else found | {"points": points}


def asserting(check: str) -> str:
    """A check that raises where the answer is wrong: nbgrader looks at nothing else."""
    return CALL.sub(r"assert exercise.\1(\2)", check)


def marked(lines: list[Line]) -> list[Line]:
    """The lines with each solution between marks."""
    comment = "//" if lines[0][0].startswith(MAGIC) else "###"
    found, inside = [], False
    for line, is_added in [*lines, ("", False)]:
        if is_added != inside:
            word, inside = ("END", False) if inside else ("BEGIN", True)
            indent = "" if not inside else line[: len(line) - len(line.lstrip())]
            found.append((f"{indent}{comment} {word} SOLUTION", True))
        found.append((line, is_added))
    return found[:-1]
