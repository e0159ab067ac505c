"""Every exercise accepts its right answers and rejects its wrong ones, saying why."""

import importlib
import runpy
from pathlib import Path

import pytest

from cnnlab import lessons
from cnnlab.check.kinds import Exercise
from cnnlab.course.parts import number

FOLDER = Path(__file__).parent / "answers"
EXERCISES = Path(lessons.__file__).parent
FILES = {file.stem: runpy.run_path(str(file)) for file in sorted(FOLDER.glob("lesson_*.py"))}


def marks(lesson):
    """The marks of a lesson's answers: most are compiled, which is slow."""
    return [pytest.mark.slow] * (lesson >= "lesson_01")


def of_all_lessons(kind):
    """Each answer of that kind, as the lesson and its number."""
    return [
        pytest.param(name, i, marks=marks(name))
        for name, answers in FILES.items()
        for i in range(len(answers[kind]))
    ]


def test_every_lesson_has_answers():
    lessons = (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")
    assert set(FILES) == {f"lesson_{number(file.stem)}" for file in lessons}
    assert all(answers["RIGHT"] and answers["WRONG"] for answers in FILES.values())


def model_answers():
    """Each exercise of the package, as its module and its name."""
    for file in sorted(EXERCISES.glob("lesson_*.py")):
        module = importlib.import_module(f"cnnlab.lessons.{file.stem}")
        for name, value in vars(module).items():
            if isinstance(value, Exercise):
                id_ = f"{file.stem}-{name}"
                yield pytest.param(value, name, marks=marks(file.stem), id=id_)


@pytest.mark.parametrize("exercise, name", list(model_answers()))
def test_the_model_answer_is_accepted_without_a_hint(exercise, name, capsys):
    assert exercise.name == name.replace("_", " "), "a name is given once"
    assert exercise(exercise.model()), capsys.readouterr().out


def test_every_exercise_of_the_package_has_a_wrong_answer():
    for file in EXERCISES.glob("lesson_*.py"):
        module = importlib.import_module(f"cnnlab.lessons.{file.stem}")
        asked = {id(exercise) for exercise, *_ in FILES[file.stem]["WRONG"]}
        missing = [
            k for k, v in vars(module).items() if isinstance(v, Exercise) and id(v) not in asked
        ]
        assert not missing, f"{file.stem}: {missing}"


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
