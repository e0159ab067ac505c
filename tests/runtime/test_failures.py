"""Failures in one line, waits that are long, and few repeats."""

import subprocess
import sys
import time
import types

import pytest

from cnnlab.data import DataError
from cnnlab.measure import timing
from cnnlab.runtime import failures
from cnnlab.runtime.failures import MENDABLE, few, one_line, status
from cnnlab.training import Diverged


@pytest.mark.parametrize(
    "problem, line, code",
    [
        (ValueError("batch: expected 1, got 0"), "batch: expected 1, got 0", 2),
        (DataError("mnist: in no place"), "mnist: in no place", 1),
        (RuntimeError("no compiler\nand a long story\n"), "no compiler", 1),
        (MemoryError(), "out of memory", 1),
        (MemoryError("Unable to allocate 41 GiB"), "out of memory: Unable to allocate 41 GiB", 1),
        (FileNotFoundError(2, "No such file", "a"), "[Errno 2] No such file: 'a'", 1),
        (RuntimeError(), "RuntimeError", 1),
        (Diverged("diverged at epoch 2"), "diverged at epoch 2", 3),
    ],
)
def test_a_failure_is_one_line_with_a_status_and_a_mistake_is_not_hidden(problem, line, code):
    assert isinstance(problem, MENDABLE)
    assert (one_line(problem), status(problem)) == (line, code)
    assert not isinstance(ZeroDivisionError(), MENDABLE) and not isinstance(KeyError(), MENDABLE)


def test_few_repeats_where_the_variable_asks_for_them(monkeypatch):
    assert few(11) == 11
    monkeypatch.setenv("CNNLAB_REPEATS", "3")
    assert few(11) == 3 and few(2) == 2
    for wrong in ("0", "-1", "many", ""):
        monkeypatch.setenv("CNNLAB_REPEATS", wrong)
        with pytest.raises(ValueError, match=f"CNNLAB_REPEATS: expected .* got '{wrong}'"):
            few(11)


def test_only_a_long_wait_is_said(capsys, monkeypatch):
    monkeypatch.setattr(failures, "AFTER", 0.05)
    with failures.telling("starting"):
        pass
    with failures.telling("counting"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "\rcounting\n"
    notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # which shows stderr as an error
    with failures.telling("counting"):
        time.sleep(0.5)
    assert capsys.readouterr() == ("\rcounting\n", "")
    timing.compare({"": lambda: time.sleep(0.02)}, repeats=20)  # a bar
    said = capsys.readouterr()
    assert "measuring" in said.out and not said.err


COMPILING = """
import numba
from cnnlab.runtime import failures
failures.AFTER = {after}
failures.tell_of_compiling()
failures.tell_of_compiling()
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
def test_compiling_is_said_once_when_it_has_taken_long():
    ours, said = "cnnlab.kernels.loops", f"\r{failures.COMPILING}\n".encode()
    for after, module, expected in ((0.01, ours, said), (60, ours, b""), (0.01, "__main__", b"")):
        command = [sys.executable, "-c", COMPILING.format(after=after, module=module)]
        done = subprocess.run(command, capture_output=True)
        assert (done.returncode, done.stderr) == (0, expected)
