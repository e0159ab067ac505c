"""What several tests of assignments look at: the lessons, taken apart, and an assignment of two."""

import functools
from pathlib import Path

import pytest

from cnnlab.course.assignment import chosen, folders
from cnnlab.course.assignment.exercises import exercises
from tests.source import NOTEBOOKS, ROOT

LESSONS = sorted(NOTEBOOKS.glob("*.ipynb"))


@functools.cache
def lesson(path):
    """A lesson as students get it, and its exercises. Not to be changed."""
    nb = folders.lesson_of(path)
    return nb, tuple(exercises(nb, path.stem))


def written(folder, *numbers, title=None, due=None, seed=1):
    """An assignment of lessons in a new folder; every file of it, by its path, as bytes."""
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    made = chosen.assignment(list(numbers), NOTEBOOKS, title, due)
    where = folders.write(made, ROOT, Path(folder), seed)
    return {str(f.relative_to(where)): f.read_bytes() for f in where.rglob("*") if f.is_file()}
