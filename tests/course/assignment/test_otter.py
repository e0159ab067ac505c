"""Otter's source: questions with solution and test, assigned and run by otter's own commands."""

import json

import nbformat
import pytest

from cnnlab.course.assignment import otter
from cnnlab.course.assignment.solutions import joined, solved
from tests.course.assignment import graders
from tests.course.assignment.made import LESSONS, lesson, written


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_exercise_is_a_question(path):
    nb, asked = lesson(path)
    source = otter.source(nb, path.stem, {each: solved(nb, each) for each in asked})
    nbformat.validate(source)
    raw = [cell.source.splitlines()[0] for cell in source.cells if cell.cell_type == "raw"]
    question = ["BEGIN QUESTION", "BEGIN SOLUTION", "END SOLUTION"]
    question += ["BEGIN TESTS", "END TESTS", "END QUESTION"]
    assert raw == ["# ASSIGNMENT CONFIG", *(f"# {mark}" for _ in asked for mark in question)]
    for each in asked:
        text = f"name: {each.name}\npoints: {each.points}"
        assert sum(text in cell.source for cell in source.cells) == 1


def test_marks_are_comments_in_both_languages():
    lines = [("def f(x):", False), ("    ...", False), ("    return x", True)]
    assert joined(otter.marked(lines)).splitlines()[2:] == [
        "    # BEGIN SOLUTION NO PROMPT",
        "    return x",
        "# END SOLUTION",
    ]
    lines = [("%%cuda mine", False), ("int a;", True), ("int b;", False)]
    assert joined(otter.marked(lines)).splitlines() == [
        "%%cuda mine",
        *["/*", "# BEGIN SOLUTION NO PROMPT", "*/"],
        "int a;",
        *["/*", "# END SOLUTION", "*/"],
        "int b;",
    ]


@pytest.mark.slow
def test_otter_assigns_and_runs(tmp_path):
    """The solved notebook gets all points, the skeleton none."""
    pytest.importorskip("otter.assign", reason="pip install otter-grader")
    files = written(tmp_path, "00", title="First")
    name = "00_start_here.ipynb"
    (tmp_path / name).write_bytes(files[f"instructor/otter/{name}"])
    graders.run(tmp_path, "otter", "assign", "--no-run-tests", name, "made")
    released = (tmp_path / "made" / "student" / name).read_text(encoding="utf-8")
    assert "SOLUTION" not in released and "10 * 216" not in released
    [tests] = (tmp_path / "made" / "autograder").glob("*.zip")
    for who, share in (("autograder", 1), ("student", 0)):
        notebook = tmp_path / "made" / who / name
        graders.run(tmp_path, "otter", "run", "-a", str(tests), "-o", str(tmp_path), str(notebook))
        results = json.loads((tmp_path / "results.json").read_text())["tests"]
        scores = {r["name"]: r["score"] for r in results if "score" in r}
        assert scores == dict.fromkeys(("parameters", "steps", "bias_gradient"), share)
