"""What a communicator says of itself, in the virtual world as in the real one."""

import pytest

from cnnlab.ranks.virtual import World


def test_a_rank_knows_its_number_and_how_many_there_are():
    def program(comm):
        assert (comm.Get_rank(), comm.Get_size()) == (comm.rank, comm.size)
        return comm.rank, comm.size

    assert World(3).run(program) == [(0, 3), (1, 3), (2, 3)]


def test_its_clock_goes_on_as_it_computes():
    def program(comm):
        comm.compute(2.0)
        return comm.clock()

    assert World(2, speed=[1, 3]).run(program) == [2, 6]


def test_what_it_does_not_know_is_refused_by_name():
    with pytest.raises(
        AttributeError, match=r"comm\.Alltoallw: the virtual world does not know it"
    ):
        World(1).run(lambda comm: comm.Alltoallw())
