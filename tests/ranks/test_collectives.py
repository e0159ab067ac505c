"""What allreduce refuses, before it sends anything; `test_job` runs it on ranks."""

import numpy as np
import pytest

from cnnlab.ranks import Alone
from cnnlab.ranks.collectives import allreduce

READ_ONLY = np.zeros(3, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "array, error, words",
    [
        ([0.0], TypeError, "array: expected a NumPy array of float32 or float64, got list"),
        (np.zeros(3, int), TypeError, "array: expected .* got int64"),
        (np.zeros((3, 2))[:, 0], ValueError, r"array: expected a C-contiguous, .* strides \(16,\)"),
        (READ_ONLY, ValueError, "array: expected a C-contiguous, writeable array, got a read-only"),
    ],
)
def test_an_unfit_array_is_refused(array, error, words):
    with pytest.raises(error, match=words):
        allreduce(Alone(), array)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match=r"schedule: expected one of tree, .* got 'star'"):
        allreduce(Alone(), np.zeros(3), "star")


def test_one_rank_keeps_its_array():
    array = np.arange(3.0)
    for schedule in ("tree", "butterfly", "ring", "rabenseifner"):
        allreduce(Alone(), array, schedule)
    assert array.tolist() == [0, 1, 2]
