"""Programs under mpiexec."""

import os
import subprocess
import sys

from cnnlab.ranks.cluster import find_mpiexec

PATIENCE = 120


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
