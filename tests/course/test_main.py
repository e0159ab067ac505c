import subprocess
import sys

import pytest

from cnnlab.course import __main__ as course
from cnnlab.course import commands, parts


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
    for name in ("run", "render", "check", "lowest"):
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


def test_ctrl_c_is_told_and_ends_with_status_130(monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", stop)
    with pytest.raises(SystemExit) as end:
        course.main(["run"])
    assert end.value.code == 130 and capsys.readouterr().err == "\nstopped\n"
