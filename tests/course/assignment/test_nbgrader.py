"""nbgrader's source: valid, marked, and graded by nbgrader's own commands."""

import nbformat
import pytest

from cnnlab.course.assignment import nbgrader
from cnnlab.course.assignment.solutions import joined, solved
from tests.course.assignment import graders
from tests.course.assignment.made import LESSONS, lesson, written

SOLUTION, CHECK = {"grade": False, "solution": True}, {"grade": True, "solution": False}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_answers_and_checks_are_marked_and_nothing_else(path):
    nb, asked = lesson(path)
    source = nbgrader.source(nb, {each: solved(nb, each) for each in asked})
    nbformat.validate(source)
    marks = [cell.metadata.get("nbgrader", {}) for cell in source.cells]
    assert len({mark["grade_id"] for mark in marks if mark}) == 2 * len(asked)
    assert sum(bool(mark) for mark in marks) == 2 * len(asked)
    assert "nbgrader" not in str(nb.metadata) and "SOLUTION" not in str(nb.cells)
    for each in asked:
        assert SOLUTION.items() <= marks[each.answer].items() and not marks[each.answer]["locked"]
        assert CHECK.items() <= marks[each.check].items() and marks[each.check]["locked"]
        assert marks[each.check]["points"] == each.points
        text = source.cells[each.answer].source
        assert text.count("BEGIN SOLUTION") == text.count("END SOLUTION") > 0
        assert f"assert exercise.{each.name}({each.variable})" in source.cells[each.check].source


def test_a_solution_lies_between_marks_of_its_language():
    lines = [("def f(x):", False), ("    ...", False), ("    y = x", True), ("    return y", True)]
    assert joined(nbgrader.marked(lines)).splitlines()[2:] == [
        "    ### BEGIN SOLUTION",
        "    y = x",
        "    return y",
        "### END SOLUTION",
    ]
    lines = [("%%cuda mine", False), ("int a;", True), ("int b;", False)]
    assert joined(nbgrader.marked(lines)).splitlines() == [
        "%%cuda mine",
        "// BEGIN SOLUTION",
        "int a;",
        "// END SOLUTION",
        "int b;",
    ]


@pytest.mark.slow
def test_nbgrader_releases_grades_and_feeds_back(tmp_path):
    """A student who solved all, as the answers do, gets all points; who did nothing gets none."""
    pytest.importorskip("nbgrader.apps", reason="pip install nbgrader")
    files = written(tmp_path, "00", title="First")
    course = tmp_path / "first" / "instructor" / "nbgrader"
    graders.run(course, "nbgrader", "generate_assignment", "first")
    name = "00_start_here.ipynb"
    released = nbformat.read(course / "release" / "first" / name, as_version=4)
    given, full = (
        nbformat.reads(files[f"{where}/{name}"].decode(), as_version=4)
        for where in ("students", "instructor/answers")
    )
    for mine, theirs in zip(given.cells, released.cells, strict=True):
        if mine.source != theirs.source:  # a blank line where a solution was, or an assert
            assert [*filter(str.strip, theirs.source.splitlines())] == [
                *filter(str.strip, nbgrader.asserting(mine.source).splitlines())
            ]
    for student in ("honest", "lazy"):
        for cell, solution in zip(released.cells, full.cells, strict=True):
            if student == "honest" and cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = solution.source
        folder = course / "submitted" / student / "first"
        folder.mkdir(parents=True)
        before = (
            released
            if student == "honest"
            else nbformat.read(course / "release" / "first" / name, as_version=4)
        )
        nbformat.write(before, folder / name)
    graders.run(course, "nbgrader", "autograde", "first")
    graders.run(course, "nbgrader", "generate_feedback", "first")
    graders.run(course, "nbgrader", "export")
    rows = (course / "grades.csv").read_text().splitlines()
    head = rows[0].split(",")
    points = {
        row["student_id"]: (float(row["score"]), float(row["max_score"]))
        for row in (dict(zip(head, line.split(","), strict=True)) for line in rows[1:])
    }
    assert points == {"honest": (3, 3), "lazy": (0, 3)}
    assert (course / "feedback" / "lazy" / "first" / "00_start_here.html").is_file()
