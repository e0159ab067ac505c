"""Assignments: what students get, what the instructor gets, and the points that nbgrader gives."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from cnnlab.check import collective, kinds
from cnnlab.course import __main__ as course
from cnnlab.course import assignment
from cnnlab.lessons import lesson_20

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ENVIRONMENT = ROOT / "build" / "venv-grading"


def written(folder, lessons, title="Week 3", due="", seed="7"):
    assignment.write(folder, ROOT / "notebooks", lessons, title, due, seed)
    return folder


def sources(file):
    return [cell.source for cell in nbformat.read(file, as_version=4).cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_exercise_of_a_lesson_has_points_and_students_see_no_answer(path):
    made = assignment.assignment(path, "Week 3", "", 7)
    lesson = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    marks = re.findall(r"^\*\*\d+ (●+) ", text, re.MULTILINE)
    cells = [cell.metadata.get("nbgrader", {}) for cell in made.cells]
    assert [cell["points"] for cell in cells if "points" in cell] == list(map(len, marks))
    algorithms = "\n".join(cell.source for cell in made.cells if "BEGIN SOLUTION" in cell.source)
    handed_out = assignment.for_students(made)
    for cell in handed_out.cells:
        assert "nbgrader" not in cell.metadata and not cell.get("outputs")
        assert "BEGIN" not in cell.source and "<details>" not in cell.source
    given = {line for cell in handed_out.cells for line in cell.source.splitlines()}
    asked = {line for cell in lesson.cells for line in cell.source.splitlines()}
    secret = {line for line in algorithms.splitlines() if line.strip()} - asked
    assert secret and not secret & given


def test_students_find_no_gap_where_a_barrier_is_missing(tmp_path):
    file = written(tmp_path, "31") / "students" / "week-3" / "31_shared_memory.ipynb"
    [kernel] = [s for s in sources(file) if s.startswith("%%cuda") and "images[row][col]" in s]
    assert kernel.count("__syncthreads") == 1 and "\n\n" not in kernel


def test_an_assignment_is_never_overwritten(tmp_path):
    written(tmp_path, "05")
    (tmp_path / "nbgrader_config.py").write_text("mine")
    written(tmp_path, "05", title="Week 4")
    assert (tmp_path / "nbgrader_config.py").read_text() == "mine"
    with pytest.raises(ValueError, match="TITLE: expected a new one, got 'Week 3'"):
        written(tmp_path, "20")


def test_title_date_and_seed_are_said_and_only_the_instructor_sees_the_seed(tmp_path, capsys):
    written(tmp_path, "05, 20", due="2030-01-31", seed="4711")
    for folder, secret in (("source", True), ("students", False)):
        files = sorted((tmp_path / folder / "week-3").iterdir())
        assert [file.stem for file in files] == ["05_one_core", "20_ranks"]
        first, *others = sources(files[0])
        assert "# 05 · One core" in first and "Week 3" in first and "2030-01-31" in first
        assert ("seed=4711" in "\n".join(others)) == secret
    assert "--duedate" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given, words",
    [
        ([""], "LESSONS: expected numbers of 00, 00b, "),
        (["05 99"], "got '99'"),
        (["05; touch mine"], "got '05;'"),
        (["05", "--title=!?"], "TITLE: expected letters or digits, got '!?'"),
        (["05", "--due=tomorrow"], "DUE: expected a date such as 2030-01-31, got 'tom"),
        (["05", "--seed=-1"], "SEED: expected a whole number, got '-1'"),
    ],
)
def test_bad_input_gets_one_clear_line(given, words, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(course, "ROOT", tmp_path)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    with pytest.raises(SystemExit) as stopped:
        course.main(["assignment", *given])
    said = capsys.readouterr().err
    assert stopped.value.code and words in said and said.count("\n") == 1
    assert not (tmp_path / "build").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target, name", [("assignment", "LESSONS"), ("render-check", "LESSON")])
@pytest.mark.parametrize(
    "lessons", ["99; touch MINE", '99" ; touch MINE ; "', "`touch MINE`", "99$(shell touch MINE)"]
)
def test_make_hands_the_numbers_over_unread(target, name, lessons, tmp_path):
    mine = tmp_path / "mine"
    here = Path(sys.executable).parent.parent  # this environment, which has all
    lessons = lessons.replace("MINE", str(mine))
    command = ["make", target, f"VENV={here}", f"{name}={lessons}"]
    done = subprocess.run(
        [*command, "--assume-old=setup", f"--assume-old={here}/installed"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode and not mine.exists()
    assert target != "assignment" or "LESSONS: expected" in done.stderr, done.stderr


# --- fresh cases --------------------------------------------------------------------------------


@kinds.kernel("conv_backward_bias", "a hint")
def bias_plain(dz, db):
    """In plain Python, so that its calls can be recorded."""
    db[:] = dz.sum(axis=(0, 2, 3))


def cases(exercise, seed):
    """The shapes and the numbers that a right answer is tried on, one list each."""
    shapes, numbers = [], []

    def answer(*given, **named):
        shapes.append([np.shape(each) for each in given])
        numbers.append([each.tobytes() if hasattr(each, "tobytes") else each for each in given])
        numbers.append(named)
        return exercise.model()(*given, **named)

    exercise.grade(answer, seed)
    return shapes, numbers


@pytest.mark.parametrize("exercise", [bias_plain, lesson_20.from_ranks], ids=lambda e: e.name)
def test_the_seed_decides_the_cases(exercise):
    (shapes, numbers), (other_shapes, other_numbers) = cases(exercise, 1), cases(exercise, 2)
    assert (shapes, numbers) == cases(exercise, 1)
    assert numbers != other_numbers and len(numbers) == len(other_numbers)
    assert (shapes != other_shapes) == (exercise is bias_plain)


def test_ranks_get_the_seed(monkeypatch):  # which are other processes
    given = []

    class Ranks:
        def run(self, _function, *arguments, timeout=None):
            given.extend(arguments[-1:] if timeout else ())
            return [""]

    monkeypatch.setattr(collective, "cluster", lambda _n: contextlib.nullcontext(Ranks()))
    reduce = kinds.kernel("reduce", "a hint", by=collective.kernel)(lesson_20.reduce.model())
    reduce(reduce.model())
    for seed in (1, 1, 2):
        reduce.grade(reduce.model(), seed)
    usual, first, again, other = given
    assert usual == 0 and first == again and len({usual, first, other}) == 3


def test_grading_raises_where_a_check_prints():
    assert not bias_plain(lambda dz, db: db.fill(1))
    for answer, words in ((lambda dz, db: db.fill(1), "✗"), (..., "not yet answered")):
        with pytest.raises(AssertionError, match=words):
            bias_plain.grade(answer, seed=1)


def test_a_check_writes_nothing_to_standard_error(capsys):
    """nbgrader gives no points to a cell that does."""

    @kinds.tested(lambda answer: answer(), "a hint")
    def quiet():
        return ""

    def answer():
        print("starting 5 ranks", file=sys.stderr)
        return ""

    assert quiet(answer)
    quiet.grade(answer, seed=1)
    said = capsys.readouterr()
    assert said.err == "" and said.out.count("starting 5 ranks") == 2


# --- with nbgrader ------------------------------------------------------------------------------

READ = """
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({
        hand_in.student.id: {
            notebook.name: [[g.name, g.auto_score, g.max_score] for g in notebook.grades]
            for notebook in hand_in.notebooks
        }
        for hand_in in book.assignment_submissions("week-3")
    }))
"""


@pytest.fixture(scope="module")
def python():
    """A Python with nbgrader, in an environment of its own: it also brings tabs to JupyterLab."""
    program, made = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed"
    if not made.exists() or made.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        course = ["--quiet", "--editable", f"{ROOT}[lessons,mpi,grading]"]
        venv = [sys.executable, "-m", "venv", "--clear", ENVIRONMENT]
        uv = [sys.executable, "-m", "uv", "pip", "install", "--python", program, *course]
        pip = [program, "-m", "pip", "install", "--disable-pip-version-check", *course]
        if not works(venv) or not (works(uv) or works(pip)):
            pytest.skip("nbgrader: not installed, pip has failed")
        made.touch()
    return program


def works(command):
    return subprocess.run(command, capture_output=True).returncode == 0


def hand_in(course, student, lesson, change):
    """Hand in a released notebook, with the lines of a solution as `change(name, lines)` says."""
    source, released = (course / f / "week-3" / f"{lesson}.ipynb" for f in ("source", "release"))
    solved, nb = (nbformat.read(file, as_version=4) for file in (source, released))
    for cell, full in zip(nb.cells, solved.cells, strict=True):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            lines = [line for line in full.source.splitlines() if "SOLUTION" not in line]
            cell.source = change(cell.metadata.nbgrader.grade_id, cell.source, "\n".join(lines))
    folder = course / "submitted" / student / "week-3"
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, folder / f"{lesson}.ipynb")


def honest(name, skeleton, solved):
    return solved


def lazy(name, skeleton, solved):
    return skeleton


def wrong(name, skeleton, solved):
    """Two words are swapped, or one sign is another one; one convolution writes zeros."""
    if name == "fast_convolution":
        return skeleton.replace("...", "z[:] = 0")
    below, other = solved.removeprefix(skeleton.rstrip()), ""
    for right, other_one in (('["C", "A"]', '["A", "C"]'), (" * ", " + "), ("+=", "-=")):
        if right in below:
            other = below.replace(right, other_one, 1)
            break
    assert other not in ("", below)
    return solved.replace(below, other)


@pytest.mark.slow
def test_nbgrader_gives_points_to_who_has_earned_them(python, tmp_path):
    lessons = ["05_one_core", "20_ranks", "23_allreduce", "31_shared_memory"]
    course = written(tmp_path / "course", "05 20 23 31")
    environment = os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "CNNLAB_OFFLINE": "1",
        "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"),
        "PYTHONPATH": str(ROOT),
    }

    def run(*command):
        done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    nbgrader = str(python.parent / "nbgrader")
    run(nbgrader, "generate_assignment", "week-3")
    for lesson in lessons:
        hand_in(course, "honest", lesson, honest)
    hand_in(course, "lazy", lessons[0], lazy)
    hand_in(course, "wrong", lessons[0], wrong)
    run(nbgrader, "autograde", "week-3")
    run(nbgrader, "generate_feedback", "week-3", "--student", "wrong")
    points = json.loads(run(python, "-c", READ))
    assert set(points["honest"]) == set(lessons)
    for lesson, grades in points["honest"].items():
        assert grades and all(auto == most > 0 for _, auto, most in grades), (lesson, grades)
    for student in ("lazy", "wrong"):
        grades = points[student][lessons[0]]
        assert grades and not any(auto for _, auto, _ in grades), (student, grades)
    feedback = (course / "feedback" / "wrong" / "week-3" / f"{lessons[0]}.html").read_text("utf-8")
    assert "Hint: " in feedback and "✗" in feedback
