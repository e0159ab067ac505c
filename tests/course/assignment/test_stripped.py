"""The exercises for students: no answers in them, and the same verdicts."""

import runpy
from pathlib import Path

import pytest

from cnnlab.course import answers
from cnnlab.course.assignment.stripped import without_answers

ANSWERS = Path(__file__).parents[2] / "check" / "answers"
QUICK = ["00", "04", "12", "21", "53", "54", "57", "58", "59"]  # of every kind that is sealed
FILES = [
    pytest.param(file, marks=[pytest.mark.slow] * (file.stem[7:] not in QUICK), id=file.stem)
    for file in sorted(answers.EXERCISES.glob("lesson_*.py"))
]
SEALED = "number", "choice", "labels", "formula"


@pytest.mark.parametrize("file", FILES)
def test_exercises_without_answers_give_the_same_verdicts(file, tmp_path):
    """On the right and the wrong answers that there are; kernels are compared as before."""
    source = without_answers(file)
    (tmp_path / "stripped.py").write_text(source, encoding="utf-8")
    stripped, given = runpy.run_path(str(tmp_path / "stripped.py")), runpy.run_path(str(file))
    assert source == without_answers(file), "twice gives the same"
    tries = runpy.run_path(str(ANSWERS / file.name))
    for kind in ("RIGHT", "WRONG"):
        for exercise, answer, *_ in tries[kind]:
            name = exercise.name.replace(" ", "_")
            called = source.rpartition(f"\ndef {name}(")[0].rpartition("\n@kinds.")[2]
            if called.startswith(SEALED) or called.startswith("tested(sealed.examples"):
                assert stripped[name](answer) == (kind == "RIGHT"), (name, answer)
            assert stripped[name].hints == given[name].hints and not stripped[name].why


SOURCE = '''"""The exercises of a toy."""

import math

from cnnlab.check.exercises import kinds

SEVEN = 7


def helper():
    return SEVEN


def judge(answer):
    return "" if answer(3) == 9 else "expected the square"


@kinds.number("A hint.", rtol=0.1)
def seven():
    """Why: it is seven."""
    return helper() + math.floor(0.5)


@kinds.tested(judge, "Another.", tells=True)
def squared(n):
    """Why not?"""
    return n * n


@kinds.kernel("dense_backward_bias", "A third.")
def bias(dz, db):
    """The slice writes."""
    db[:] = dz.sum(axis=0)
'''


def test_what_only_answers_need_goes_with_them(tmp_path):
    file = tmp_path / "lesson_99.py"
    file.write_text(SOURCE, encoding="utf-8")
    source = without_answers(file)
    for gone in ("SEVEN", "helper", "math", "judge", "n * n", "sum", "Why", "slice", "tells"):
        assert gone not in source, gone
    for hint in ("A hint.", "Another.", "A third.", "rtol=0.1", "dense_backward_bias"):
        assert hint in source
    assert "sealed.examples([([3], [3], 9)])" in source


def test_a_test_that_rejects_the_model_answer_is_an_error(tmp_path):
    file = tmp_path / "lesson_99.py"
    file.write_text(SOURCE.replace("n * n", "n + n"), encoding="utf-8")
    with pytest.raises(ValueError, match="squared: expected a test that accepts the model answer"):
        without_answers(file)
