"""Commands of graders that students and instructors run, on notebooks of this checkout."""

import os
import subprocess
import sys

from tests.source import ROOT


def run(folder, *command):
    """Run `python -m …` in a folder, where notebooks find this checkout; it must succeed."""
    names = {"PYTHONPATH": str(ROOT), "CNNLAB_OFFLINE": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | names,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
