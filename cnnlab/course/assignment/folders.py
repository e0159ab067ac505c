"""The folders of an assignment: one for students, without answers, and one for the instructor."""

import json
import secrets
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from cnnlab.course import handout, lesson, parts
from cnnlab.course.assignment import nbgrader, otter, pages, wheel
from cnnlab.course.assignment.chosen import Assignment
from cnnlab.course.assignment.exercises import Asked, exercises, separated
from cnnlab.course.assignment.solutions import joined, solved
from cnnlab.runtime.files import replacing


def write(made: Assignment, root: Path, folder: Path, seed: int | None = None) -> Path:
    """Write `students` and `instructor` to `folder`/name of the checkout `root`; return that.

    The same lessons give the same bytes: the secret seed is drawn once, and then kept. What else
    lies in these folders stays. Raises ValueError if they are those of other lessons.
    """
    folder = folder / made.name
    seed = kept_seed(made, folder) if seed is None else seed
    with tempfile.TemporaryDirectory() as temporary:
        built = wheel.write_wheel(root, Path(temporary))
        files = {f"students/{built.name}": built.read_bytes()}
    for page in handout.PAGES:
        files[f"students/{page}"] = (root / "notebooks" / page).read_bytes()
    asked: list[Asked] = []
    for path in made.lessons:
        nb = lesson_of(path)
        answers = {each: solved(nb, each) for each in exercises(nb, path.stem)}
        asked += answers
        for where, notebook in exported(nb, path.stem, made.name, answers).items():
            files[where] = lesson.to_text(notebook).encode()
    files |= {where: text.encode() for where, text in texts(made, asked, seed).items()}
    for where, content in files.items():
        (folder / where).parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder / where) as file:
            file.write(content)
    return folder


def lesson_of(path: Path) -> NotebookNode:
    """A lesson as students get it, separated.

    Its first cell knows no public address, from which it would fetch the course with its answers.
    """
    nb = lesson.stamp(nbformat.read(path, as_version=4), path.name, None)
    return separated(handout.for_students(nb))


def exported(nb: NotebookNode, lesson_name: str, name: str, answers: dict) -> dict:
    """The notebooks that a separated lesson becomes, by where they go."""
    full = nbformat.from_dict(nb)
    for asked, lines in answers.items():
        full.cells[asked.answer].source = joined(lines)
    file = f"{lesson_name}.ipynb"
    return {
        f"students/{file}": lesson.canonical(nb),
        f"instructor/answers/{file}": lesson.canonical(full),
        f"instructor/nbgrader/source/{name}/{file}": nbgrader.source(nb, answers),
        f"instructor/otter/{file}": otter.source(nb, lesson_name, answers),
    }


def texts(made: Assignment, asked: list[Asked], seed: int) -> dict[str, str]:
    """The other files, by where they go."""
    return {
        "students/READ-ME.md": pages.for_students(made, asked),
        "instructor/READ-ME.md": pages.for_instructors(made, asked),
        "instructor/rubric.json": json.dumps(rubric(made, asked, seed), indent=1) + "\n",
        "instructor/nbgrader/nbgrader_config.py": nbgrader.CONFIG,
    }


def rubric(made: Assignment, asked: list[Asked], seed: int) -> dict:
    """What a grader needs: the exercises with their points, and the seed of fresh cases."""
    rows = [
        {"lesson": each.lesson, "name": each.name, "points": each.points, "variable": each.variable}
        for each in asked
    ]
    return {"title": made.title, "due": made.due, "exercises": rows, "seed": seed}


def kept_seed(made: Assignment, folder: Path) -> int:
    """The seed of the rubric that is there, or a new one.

    Raises ValueError if the rubric is that of other lessons, or cannot be read.
    """
    file = folder / "instructor" / "rubric.json"
    if not file.is_file():
        return secrets.randbits(63)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        lessons, seed = {row["lesson"] for row in found["exercises"]}, int(found["seed"])
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{file}: expected a rubric, got {problem!r}") from None
    if lessons != {parts.number(path.stem) for path in made.lessons}:
        there = ", ".join(sorted(lessons))
        raise ValueError(f"TITLE: expected a new one, as {folder} is of lessons {there}")
    return seed
