"""Verdicts on one rank's array; `test_answers` runs whole collectives on ranks."""

import numpy as np
import pytest

from cnnlab.check.collective import compare, kernel

VALUES = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match=r"operation: expected one of allreduce, .* got 'sum'"):
        kernel("sum", None)


@pytest.mark.parametrize(
    "operation, rank, array, text",
    [
        ("allreduce", 2, [9, 12], ""),
        ("allreduce", 2, [9, 11], "rank 2, element 1 of 2: expected 12, got 11"),
        ("reduce", 0, [1, 2], "rank 0, element 1 of 2: expected 12, got 2"),
        ("reduce", 1, [0, 0], ""),  # only rank 0's array counts
        ("broadcast", 1, [1, 2], ""),
        ("broadcast", 1, [3, 2], "rank 1, element 0 of 2: expected 1, got 3"),
    ],
)
def test_a_wrong_element_is_named(operation, rank, array, text):
    assert compare(operation, np.array(array, np.float32), VALUES, rank) == text
