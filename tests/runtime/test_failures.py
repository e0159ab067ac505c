import pytest

from cnnlab.data import DataError
from cnnlab.runtime.failures import MENDABLE, one_line, status
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
def test_a_failure_is_one_line_with_a_status(problem, line, code):
    assert isinstance(problem, MENDABLE)
    assert (one_line(problem), status(problem)) == (line, code)


def test_a_mistake_in_the_program_is_not_hidden():
    assert not issubclass(ZeroDivisionError, MENDABLE) and not issubclass(KeyError, MENDABLE)
