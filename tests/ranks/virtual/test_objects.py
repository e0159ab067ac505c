"""Collectives of objects: those that tests/ranks/virtual/test_calls.py has not."""

import pytest

from cnnlab.ranks.virtual import World


def test_a_reduction_of_objects_is_in_the_order_of_ranks():
    def program(comm):
        return comm.allreduce([comm.rank]), comm.reduce("abc"[comm.rank], root=1)

    assert World(3).run(program) == [([0, 1, 2], None), ([0, 1, 2], "abc"), ([0, 1, 2], None)]


@pytest.mark.parametrize("call", ["scatter", "alltoall"])
def test_there_must_be_one_for_each_rank(call):
    with pytest.raises(ValueError, match="things: expected one for each of 2, got 3"):
        World(2).run(lambda comm: getattr(comm, call)([1, 2, 3]))
