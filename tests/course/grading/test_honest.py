"""No honest answer loses a point, in any of three styles; and what was handed out earns none."""

import json

import pytest

from cnnlab.course.grading import find
from cnnlab.course.grading.classroom import Classroom
from cnnlab.course.grading.grade import Plan
from cnnlab.course.parts import number, parts
from tests.course.grading.hand_in import USUAL, asked, cell, graded
from tests.course.grading.styles import written

NAMES = [number(lesson.name) for part in parts() for lesson in part.lessons]
LESSONS = [pytest.param(n, marks=[pytest.mark.mpi] * (n in ("20", "23"))) for n in NAMES]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_answers_of_the_key_have_all_points(lesson, tmp_path, packages):
    """Each exercise in one of the styles, and each style in every lesson."""
    lost(lesson, NAMES.index(lesson), tmp_path, packages)


@pytest.mark.parametrize("turn", [1, 2])
def test_each_kind_has_all_points_in_each_style(turn, tmp_path, packages):
    lost("06", NAMES.index("06") + turn, tmp_path, packages)


def lost(lesson, turn, folder, packages):
    """Fail with what the answers of the key lose."""
    original = json.loads(find.lesson_file(lesson).read_text(encoding="utf-8"))
    above = [c for c in original["cells"] if "exercise." not in "".join(c["source"])]
    file = folder / f"{lesson}_mine.ipynb"
    text = json.dumps({"cells": above + [cell(each) for each in written(lesson, turn)]})
    file.write_text(text, encoding="utf-8")
    result = graded(file, asked(lesson), packages)
    losing = [(r["name"], r["verdict"]) for r in result["exercises"] if r["points"] < r["most"]]
    assert not losing and not result["problems"], (losing, result["problems"])


@pytest.mark.parametrize("lesson", ["05", "31"])
def test_a_lesson_as_it_is_handed_out_earns_nothing(lesson, tmp_path, packages):
    plan = Plan(asked(lesson), 1, USUAL, *packages)
    room = Classroom(plan, tmp_path, 2).with_skeletons()
    (result,), failed = room.grade({"lazy": find.lesson_file(lesson)})
    assert result["points"] == 0 and not failed
