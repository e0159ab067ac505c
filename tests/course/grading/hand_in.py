"""Hand-ins made for a test, and what they get."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

from cnnlab.course.grading import find
from cnnlab.course.grading.grade import Plan, grade
from cnnlab.course.grading.sandbox import Limits

SHORT = Limits(wall=2, cpu=4, memory=1 << 30, processes=48)
USUAL = Limits(wall=100)


def notebook(*cells: str, **more) -> str:
    """A notebook of code cells, as text."""
    return json.dumps({"cells": [cell(each) for each in cells], "nbformat": 4, **more})


def cell(source: str) -> dict:
    """A code cell; its metadata is what Colab leaves of it."""
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}


def function(head: str, body: str) -> str:
    """A function of that head, and of that body in any indentation."""
    return f"def {head}:\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")


def asked(lesson: str, *names: str) -> tuple[find.Wanted, ...]:
    """Some exercises of a lesson, or all of them."""
    return tuple(e for e in find.exercises_of(lesson) if not names or e.name in names)


def graded(file: Path, wanted: Sequence[find.Wanted], packages, limits: Limits = USUAL) -> dict:
    """What a file gets, drawn from one seed."""
    return grade("a student", file, Plan(tuple(wanted), 987654321, limits, *packages))


def of_cells(folder: Path, lesson: str, names: Sequence[str], cells, packages, limits=USUAL):
    """The rows of the exercises that a notebook of these cells answers."""
    file = folder / f"{lesson}_answers.ipynb"
    file.write_text(notebook(*cells), encoding="utf-8")
    return graded(file, asked(lesson, *names), packages, limits)["exercises"]
