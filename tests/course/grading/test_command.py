"""`python -m cnnlab grade`: a class is graded, told, and not graded twice."""

import csv
import io
import json

import pytest

from cnnlab.__main__ import main
from cnnlab.course.grading.classroom import Classroom
from tests.course.grading.hand_in import notebook

pytestmark = pytest.mark.slow

RIGHT = "def my_sums(latency, per_cycle):\n    return latency * per_cycle"
SAME = "def my_sums(latency, per_cycle):  # mine\n    '''My own.'''\n    return latency*per_cycle"
WRONG = "def my_sums(latency, per_cycle):\n    print('<b>')\n    return latency + 100"
RUBRIC = {
    "title": "Sheet <1>", "due": "2030-01-01", "seed": 5,
    "exercises": [
        {"lesson": "06", "name": "sums_under_way", "points": 3, "variable": "my_sums"},
        {"lesson": "06", "name": "pixels_that_fit", "points": 1, "variable": "my_fit"},
    ],
}  # fmt: skip


@pytest.fixture
def classroom(tmp_path):
    """A folder with three students, one of them with a folder, and a rubric beside it."""
    (tmp_path / "class" / "Ann Ä").mkdir(parents=True)
    (tmp_path / "class" / "Ann Ä" / "06.ipynb").write_text(notebook(RIGHT))
    (tmp_path / "class" / "ben.ipynb").write_text(
        notebook(SAME, "from cnnlab.lessons import lesson_06 as exercise")
    )
    (tmp_path / "class" / "eve.ipynb").write_text(notebook("x = <", WRONG))
    (tmp_path / "class" / "eve.ipynb").rename(tmp_path / "class" / "06 eve.ipynb")
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    return tmp_path


def run(classroom, *more):
    words = ["grade", str(classroom / "class"), "--rubric", str(classroom / "rubric.json")]
    return main([*words, "--out", str(classroom / "out"), *more])


def test_a_class_is_graded_and_told(classroom, capsys):
    assert run(classroom, "--csv", "--json", "--points", "06.pixels_that_fit=2") == 0
    said = capsys.readouterr()
    *lines, data = said.out.splitlines()
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    points = {row["student"]: (row["points"], row["06.sums_under_way"]) for row in rows}
    assert points == {"06 eve": ("0", "0"), "Ann Ä": ("3", "3"), "ben": ("3", "3")}
    assert {each["most"] for each in json.loads(data)} == {5}
    assert "3/3" in said.err
    page = (classroom / "out" / "index.html").read_text("utf-8")
    assert "Sheet &lt;1&gt;" in page and "Ann Ä, ben" in page and "too large" in page
    students = sorted((classroom / "out" / "students").glob("*.html"))
    own = {file.name: file.read_text("utf-8") for file in students}
    assert list(own) == ["06 eve.html", "Ann %C3%84.html", "ben.html"]
    assert "SyntaxError" in own["06 eve.html"] and "Ann" not in own["06 eve.html"]
    assert not [p for p in page.split('"') if p.startswith("http")]


def test_what_is_no_notebook_is_told(classroom, capsys):
    (classroom / "class" / "zoe.zip").write_bytes(b"PK")
    (classroom / "class" / "Ann Ä" / "06-Copy1.ipynb").write_text(notebook("my_sums = ..."))
    assert run(classroom, "--csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {"student": "zoe", "points": "0"}.items() <= rows[-1].items()
    own = {f.stem: f.read_text("utf-8") for f in (classroom / "out" / "students").glob("*.html")}
    assert "zoe.zip: no notebook in it; unpack zoe.zip" in own["zoe"]
    assert "lesson 06: of 06-Copy1.ipynb, 06.ipynb 06.ipynb counts" in own["Ann %C3%84"]


def test_whom_the_grader_could_not_grade_is_in_the_tables(classroom, capsys, monkeypatch):
    monkeypatch.setattr(Classroom, "with_skeletons", lambda room: room)
    monkeypatch.setattr(Classroom, "grade", lambda *_: ([], {"ann": "odd", "ben": "odd"}))
    assert run(classroom, "--csv") == 1
    assert "\nben,0,4,0,0\n" in capsys.readouterr().out
    assert "not graded: odd" in (classroom / "out" / "students" / "ann.html").read_text()
    assert "2 × not graded: odd" in (classroom / "out" / "index.html").read_text()


@pytest.mark.parametrize("points", ["-1", "NaN"])
def test_a_rubric_with_points_that_nobody_can_have_is_refused(points, classroom, capsys):
    text = json.dumps(RUBRIC).replace('"points": 3', f'"points": {points}')
    (classroom / "rubric.json").write_text(text)
    assert run(classroom) == 2 and "points below 0" in capsys.readouterr().err


def test_what_was_graded_is_not_graded_again(classroom, capsys):
    assert run(classroom) == 0
    kept = {f: f.stat().st_mtime_ns for f in (classroom / "out" / "results").iterdir()}
    (classroom / "class" / "ben.ipynb").write_text(notebook(WRONG, "lesson_06"))
    (classroom / "out" / "results" / "Ann %C3%84.json").write_text("{")  # as half a file would be
    assert run(classroom) == 0
    again = {f: f.stat().st_mtime_ns for f in (classroom / "out" / "results").iterdir()}
    assert {f.stem for f in kept if kept[f] == again[f]} == {"06 eve"}
    assert json.loads((classroom / "out" / "results" / "ben.json").read_text())["points"] == 0


def test_the_seed_is_kept_and_only_the_owner_may_read_it(classroom, capsys):
    del (rubric := dict(RUBRIC))["seed"]
    (classroom / "rubric.json").write_text(json.dumps(rubric))
    assert run(classroom) == 0
    seed = classroom / "out" / "seed"
    drawn = seed.read_text()
    assert int(drawn) > 2**32 and seed.stat().st_mode & 0o77 == 0
    assert run(classroom) == 0 and seed.read_text() == drawn


@pytest.mark.parametrize(
    "words, expected",
    [
        ("nowhere", "SUBMISSIONS: expected a folder or a notebook, got nowhere"),
        ("{}/empty", "SUBMISSIONS: expected folders or notebooks in"),
        ("{}/class --rubric {}/nothing", "nothing"),
        ("{}/class --rubric {}/class/ben.ipynb", "--rubric: expected exercises in"),
        ("{}/class --points 06", "--points: expected an exercise and its points"),
        ("{}/class --points 07.x=3", "--points: expected an exercise such as 05.trips"),
        ("{}/class --seconds 0", "--seconds: expected a positive number"),
    ],
)
def test_a_mistake_is_one_line(words, expected, classroom, capsys, monkeypatch):
    monkeypatch.chdir(classroom)
    (classroom / "empty").mkdir()
    try:
        status = main(["grade", *words.replace("{}", str(classroom)).split()])
    except SystemExit as stop:
        status = stop.code
    said = capsys.readouterr().err
    assert status in (1, 2) and expected in said and said.count("\n") == 1
    assert not (classroom / "grades").exists()
