import subprocess
import sys
import time

import pytest

from cnnlab.runtime import failures


def test_only_a_long_wait_is_told(capsys, monkeypatch):
    monkeypatch.setattr(failures, "AFTER", 0.05)
    with failures.telling("starting"):
        pass
    with failures.telling("counting"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "\rcounting\n"


COMPILING = """
import time
import numba
from cnnlab.runtime import waiting
waiting.AFTER = {after}
waiting.tell_of_compiling()
waiting.tell_of_compiling()
__name__ = {module!r}

@numba.njit
def inner(x):
    return x + 1

@numba.njit
def outer(x):
    return inner(x) * 2

for number in (1, 1.0, 1j):
    outer(number)
"""


@pytest.mark.slow
def test_compiling_is_told_once_when_it_has_taken_long():
    ours, said = "cnnlab.kernels.loops", f"\r{failures.COMPILING}\n".encode()
    for after, module, expected in ((0.01, ours, said), (60, ours, b""), (0.01, "__main__", b"")):
        command = [sys.executable, "-c", COMPILING.format(after=after, module=module)]
        done = subprocess.run(command, capture_output=True)
        assert (done.returncode, done.stderr) == (0, expected)
