"""Exercises are found in every lesson, answer and check in cells of their own."""

import ast

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnnlab.course import answers
from cnnlab.course.assignment.exercises import Asked, exercises, separated
from tests.course.assignment.made import LESSONS, lesson

TEXT = new_markdown_cell("## Exercises\n\n**1 ●● Twice.** How much?")


def names(path):
    """The exercises of a lesson's module, in order."""
    number = path.stem.partition("_")[0]
    tree = ast.parse((answers.EXERCISES / f"lesson_{number}.py").read_text(encoding="utf-8"))
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and answers.kind(f)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_exercise_of_a_lesson_is_found(path):
    nb, asked = lesson(path)
    assert [each.name for each in asked] == names(path)
    for each in asked:
        answer, check = nb.cells[each.answer].source, nb.cells[each.check].source
        assert each.variable in answer and "exercise." not in answer
        assert check.startswith(f"exercise.{each.name}({each.variable})")
        assert 1 <= each.points <= 3
        assert "answers" not in str(nb.cells[each.check + 1 :][:1])


def test_answer_and_check_get_cells_of_their_own():
    both = new_code_cell(
        "# takes about 10 s\ndef mine(x): ...  # twice x\n\n\nexercise.twice(mine);"
    )
    nb = separated(new_notebook(cells=[TEXT, both]))
    assert [cell.source for cell in nb.cells[1:]] == [
        "def mine(x):  # twice x\n    ...",
        "exercise.twice(mine);",
    ]
    answer, check = "%%cuda mine\nint a;", "# takes about 20 s\nexercise.twice(mine)\ndraw(mine)"
    nb = separated(new_notebook(cells=[TEXT, new_code_cell(answer), new_code_cell(check)]))
    assert [cell.source for cell in nb.cells[1:]] == [answer, "exercise.twice(mine)\ndraw(mine)"]
    assert exercises(nb, "07_toy") == [Asked("07", "twice", "mine", 2, 1, 2)]


def test_a_check_without_an_answer_or_a_mark_is_an_error():
    check, answer = new_code_cell("exercise.twice(mine);"), new_code_cell("mine = ...")
    with pytest.raises(ValueError, match="07_toy: exercise twice: expected an answer"):
        exercises(new_notebook(cells=[TEXT, check]), "07_toy")
    with pytest.raises(ValueError, match="expected ●, got ''"):
        exercises(new_notebook(cells=[answer, check]), "07_toy")
