"""A lesson as otter's source: raw cells begin and end a question, its solution and its test."""

import copy

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_raw_cell

from cnnlab.course import lesson
from cnnlab.course.assignment.exercises import Asked
from cnnlab.course.assignment.solutions import MAGIC, Line, joined

CONFIG = """\
# ASSIGNMENT CONFIG
name: {name}
export_cell:
  pdf: false
tests:
  ok_format: false"""
QUESTION = """\
# BEGIN QUESTION
name: {asked.name}
points: {asked.points}"""
TEST = """\
def test_{asked.name}(exercise, {asked.variable}):
    assert exercise.{asked.name}({asked.variable})"""


def source(nb: NotebookNode, name: str, answers: dict[Asked, list[Line]]) -> NotebookNode:
    """The notebook for `otter assign`, from a `separated` lesson of that name and its answers.

    The lesson's own check stays below the question, since it may draw, too.
    """
    nb, questions = copy.deepcopy(nb), {asked.answer: asked for asked in answers}
    cells = [new_raw_cell(CONFIG.format(name=name))]
    for number, cell in enumerate(nb.cells):
        if number not in questions:
            cells.append(cell)
            continue
        asked = questions[number]
        cell.source = joined(marked(answers[asked]))
        test = new_code_cell(TEST.format(asked=asked))
        cells += [new_raw_cell(QUESTION.format(asked=asked)), *between("SOLUTION", cell)]
        cells += [*between("TESTS", test), new_raw_cell("# END QUESTION")]
    nb.cells = cells
    return lesson.canonical(nb)


def between(what: str, cell: NotebookNode) -> list[NotebookNode]:
    """A cell between two that mark it."""
    return [new_raw_cell(f"# BEGIN {what}"), cell, new_raw_cell(f"# END {what}")]


def marked(lines: list[Line]) -> list[Line]:
    """The lines with each solution between marks, which are comments of CUDA C, too."""
    in_c, found, inside = lines[0][0].startswith(MAGIC), [], False
    for line, is_added in [*lines, ("", False)]:
        if is_added != inside:
            mark = "# END SOLUTION" if inside else "# BEGIN SOLUTION NO PROMPT"
            inside = not inside
            indent = line[: len(line) - len(line.lstrip())] if inside else ""
            marks = ["/*", mark, "*/"] if in_c else [f"{indent}{mark}"]
            found += [(each, True) for each in marks]
        found.append((line, is_added))
    return found[:-1]
