"""The command line of the course, and the speedups that lessons record for its last lines."""

import subprocess
import sys

import numpy as np
import pytest

from cnnlab.course import __main__ as course
from cnnlab.course import pages, results
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.measure.timing import Timing, compare
from tests.course.toy_lesson import toy, write

TIMES = {"loops": Timing("loops", (4.0, 4.0, 4.0)), "vector": Timing("vector", (0.5, 0.4, 0.5))}


def test_every_command_is_explained_and_an_unknown_one_ends_with_status_2(capsys):
    command = [sys.executable, "-m", "cnnlab.course", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in course.COMMANDS:
        assert f"\n    {name} " in said
    for arguments, said in (
        (["fly"], "invalid choice"),
        (["check", "no-such"], "beginning of one"),
    ):
        with pytest.raises(SystemExit) as end:
            course.main(arguments)
        assert end.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "stamp", "check"])
def test_a_lesson_that_is_not_listed_says_so_and_stays(tmp_path, capsys, monkeypatch, command):
    (tmp_path / "notebooks").mkdir()
    path = write(tmp_path / "notebooks", "99_toy", toy("1 + 1"))
    before = path.read_bytes()
    monkeypatch.setattr(course, "ROOT", tmp_path)
    with pytest.raises(SystemExit) as end:
        course.main([command])
    assert end.value.code != 0 and path.read_bytes() == before
    assert capsys.readouterr().err == "99_toy: has no entry in lessons.toml\n"


def test_lowest_prints_one_version_for_each_bound(capsys):
    assert course.main(["lowest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {'numpy==2.0; python_version < "3.13"', "tqdm==4.66"} <= set(lines)
    assert {"ipyparallel==8.8", "ruff==0.17.5", "myst-nb==1.3"} <= set(lines)


@pytest.mark.parametrize(
    "problem, status, said",
    [
        (KeyboardInterrupt, 130, "\nstopped\n"),
        (RuntimeError("no space\nleft"), 1, "no space\nleft\n"),
    ],
)
def test_failures_and_ctrl_c_are_told_and_have_their_status(
    monkeypatch, capsys, problem, status, said
):
    def fail(*_):
        raise problem

    monkeypatch.setattr(pages, "run", fail)
    with pytest.raises(SystemExit) as end:
        course.main(["run"])
    assert end.value.code == status and capsys.readouterr().err == said


# --- recorded speedups --------------------------------------------------------------------------


def test_recorded_times_become_a_table(tmp_path, monkeypatch):
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path / "new" / "00_toy"))
    results.record("One epoch, batch 64", TIMES, base="loops")
    [(heading, rows)] = results.recorded(tmp_path)
    assert heading == "One epoch, batch 64"
    assert rows[0] == ["loops", str(TIMES["loops"]), "base"] and rows[1][0] == "vector"
    assert rows[1][2].startswith("8.00× (8.00 to 10.0")
    lines = results.table_text((heading, rows)).splitlines()
    assert lines[2].index("4.00 s") == lines[3].index("500 ms") == lines[1].index("median")


def test_a_time_of_the_emulator_says_so(tmp_path, monkeypatch):
    source = 'extern "C" __global__ void one(float* y) { y[threadIdx.x] = 1; }'
    kernel, y = Traced(source), np.zeros(4, np.float32)
    calls = {"numpy": lambda: y.fill(1), "device": lambda: kernel.launch("one", 1, 4, y)}
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path))
    results.record("A kernel", compare(calls, repeats=2), base="numpy")
    [(_, rows)] = results.recorded(tmp_path)
    assert [row[0] for row in rows] == ["numpy", "device, on the emulator"]


def test_record_writes_nothing_that_cannot_be_compared_and_nothing_outside_the_course(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CNNLAB_RESULTS", raising=False)
    results.record("x", TIMES, base="loops")
    monkeypatch.setenv("CNNLAB_RESULTS", str(tmp_path))
    with pytest.raises(ValueError, match="base: expected one of loops, vector, got 'numpy'"):
        results.record("x", TIMES, base="numpy")
    with pytest.raises(ValueError, match="samples: expected as many of each timing"):
        results.record("x", TIMES | {"short": Timing("short", (1.0,))}, base="loops")
    assert list(tmp_path.iterdir()) == []
