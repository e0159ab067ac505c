"""Verdicts on one rank's array; `test_answers` runs whole collectives on ranks."""

import numpy as np
import pytest

from cnnlab.check import collective as collective_module
from cnnlab.check.collective import collective, compare
from cnnlab.ranks.cluster import RankError, cluster

VALUES = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match=r"operation: expected one of allreduce, .* got 'sum'"):
        collective("sum", None)


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


@pytest.mark.mpi
def test_the_schedules_are_proved_on_ranks():
    collective_module.prove_schedules(3)
    with cluster(2) as ranks, pytest.raises(RankError, match="same bits"):
        ranks.run(one_bit_off, timeout=120)


def one_bit_off():
    from cnnlab.check import collective

    right = collective.allreduce

    def wrong(comm, array, schedule):
        right(comm, array, schedule)
        array *= 1 + 1e-6 * comm.rank

    collective.allreduce = wrong
    try:
        collective.schedules_agree()
    finally:
        collective.allreduce = right
