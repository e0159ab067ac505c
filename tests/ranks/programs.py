"""Programs under mpiexec."""

import os
import subprocess
import sys
import time

from cnnlab.ranks.cluster import find_mpiexec

PATIENCE = 120


def until(condition, seconds=PATIENCE):
    """Wait for a condition, so many seconds at most; what it was in the end."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


def start(n, *command):
    return subprocess.Popen(
        [find_mpiexec(), "-n", str(n), sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"CNNLAB_OFFLINE": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def run(n, *command, status=0):
    process = start(n, *command)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.terminate()  # a job that hangs: mpiexec ends its ranks
    assert process.returncode == status, err
    return out, err
