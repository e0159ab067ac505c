"""The wheel for students, as they use it: its checks tell right from wrong, and hold no answer."""

import os
import subprocess
import sys
import zipfile

import pytest

from cnnlab.course.assignment import wheel
from tests.source import ROOT

PROGRAM = """
import cnnlab
from cnnlab.lessons import lesson_05, lesson_12, lesson_21, lesson_54
print(cnnlab.__file__)
right = [
    lesson_05.trips(75 / 35),
    lesson_12.reads(lambda filters, kernel: filters * kernel**2),
    lesson_21.bugs(["reduce", "division", "finalize"]),
]
wrong = [
    lesson_05.trips(2),
    lesson_12.reads(lambda filters, kernel: filters * kernel),
    lesson_21.bugs(["reduce", "finalize", "division"]),
    lesson_54.aware(lambda params, gradient, rate, missed: None),
]
assert all(right) and not any(wrong)
assert "Number" in repr(lesson_05.trips.model()) and lesson_54.aware.model()(1, 2, 3, 4) is None
"""


@pytest.mark.slow  # builds a wheel, from the exercises of all lessons
def test_checks_of_the_wheel_tell_right_from_wrong(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    file = wheel.write_wheel(ROOT, tmp_path)
    assert [*tmp_path.iterdir()] == [file] and file.name.startswith("cnnlab-")
    with zipfile.ZipFile(file) as packed:
        packed.extractall(tmp_path / "here")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "here")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "here"))
    assert "Hint: Rung 4: 25 · 3 trips." not in done.stdout.split("is not right")[0]
