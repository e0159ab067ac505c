"""Every exercise accepts its right answers and rejects its wrong ones, saying why."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "answers"
FILES = {file.stem: runpy.run_path(str(file)) for file in sorted(FOLDER.glob("lesson_*.py"))}


def of_all_lessons(kind):
    """Each answer of that kind, as the lesson and its number. Most are compiled, or need ranks."""
    return [
        pytest.param(
            name,
            i,
            marks=[pytest.mark.mpi] * ("shared_ranks" in answers)
            + [pytest.mark.slow] * (name >= "lesson_10"),
        )
        for name, answers in FILES.items()
        for i in range(len(answers[kind]))
    ]


def test_every_lesson_has_answers():
    lessons = (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")
    assert set(FILES) == {f"lesson_{file.name[:2]}" for file in lessons}
    assert all(answers["RIGHT"] and answers["WRONG"] for answers in FILES.values())


@pytest.mark.parametrize("name, i", of_all_lessons("RIGHT"))
def test_a_right_answer_is_accepted(name, i, capsys):
    exercise, answer = FILES[name]["RIGHT"][i]
    assert exercise(answer), capsys.readouterr().out


@pytest.mark.parametrize("name, i", of_all_lessons("WRONG"))
def test_a_wrong_answer_is_rejected_with_the_reason(name, i, capsys):
    exercise, answer, word = FILES[name]["WRONG"][i]
    accepted = exercise(answer)
    said = capsys.readouterr().out
    assert not accepted and "✗" in said and word in said, said
