import subprocess
import sys

import pytest

from cnnlab.course import __main__ as course
from cnnlab.course import commands, handout, parts


def test_an_unknown_command_or_lesson_ends_with_status_2(capsys):
    for arguments, said in (
        (["fly"], "invalid choice"),
        (["check", "no-such"], "expected the beginning of one of"),
    ):
        with pytest.raises(SystemExit) as end:
            course.main(arguments)
        assert end.value.code == 2
        assert said in capsys.readouterr().err


def test_lowest_prints_one_version_for_each_bound(capsys):
    assert course.main(["lowest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "numpy==2.1" in lines and "ipyparallel==8.8" in lines and "ruff==0.17.5" in lines


def test_every_command_is_explained():
    command = [sys.executable, "-m", "cnnlab.course", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in course.COMMANDS:
        assert f"\n    python -m cnnlab.course {name} " in said


def test_render_also_writes_the_table_of_lessons(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text(f"before\n{parts.BEGIN}old\n{parts.END}after\n")
    monkeypatch.setattr(course, "ROOT", tmp_path)
    asked = []
    monkeypatch.setattr(commands, "render", lambda *arguments: asked.append(arguments) or 0)
    assert course.main(["render", "04"]) == 0
    text = (tmp_path / "README.md").read_text()
    assert parts.table() in text and text.startswith("before") and text.endswith("after\n")
    assert asked[0][:2] == (["04"], tmp_path / "notebooks")


def test_the_zip_and_the_copy_say_where_they_lie(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(course, "ROOT", tmp_path)
    monkeypatch.setattr(handout, "write_zip", lambda root, file: 1_234_567)
    assert course.main(["zip"]) == 0
    file = tmp_path / "build" / "cnnlab.zip"
    assert capsys.readouterr().out.startswith(f"{file}: 1.2 MB, for students; ")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_a.ipynb").touch()
    for said in ("1 lesson copied", "the lessons as you left them"):
        assert course.main(["copy"]) == 0
        assert capsys.readouterr().out == f"work/: {said}\n"
    (tmp_path / "notebooks" / "01_b.ipynb").touch()
    assert course.main(["copy"]) == 0
    assert capsys.readouterr().out == "work/: 1 lesson copied, 1 kept as you left them\n"


def test_a_wheel_that_cannot_be_built_ends_with_status_1(monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("the wheel could not be built:\nno space")

    monkeypatch.setattr(handout, "write_zip", fail)
    with pytest.raises(SystemExit) as end:
        course.main(["zip"])
    assert end.value.code == 1
    assert capsys.readouterr().err == "the wheel could not be built:\nno space\n"


def test_ctrl_c_is_told_and_ends_with_status_130(monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", stop)
    with pytest.raises(SystemExit) as end:
        course.main(["run"])
    assert end.value.code == 130 and capsys.readouterr().err == "\nstopped\n"
