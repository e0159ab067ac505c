"""Python programs that tests run in a process of their own."""

import os
import subprocess
import sys


def run(program, *arguments, folder=None, without="NUMBA_CPU", **variables):
    """Run a program that has to end well, without the variables whose names begin so."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(without)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done
