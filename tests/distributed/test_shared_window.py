from mpi4py import MPI

from cnnlab.distributed import shared_window


def test_a_communicator_keeps_its_teams():
    ours = MPI.COMM_SELF.Dup()
    assert shared_window.one_machine(ours)
    team, other = shared_window.team(ours, 5), shared_window.team(ours, 100)
    assert shared_window.team(ours, 5) is team
    assert (team.size, team.total.shape, other.total.shape) == (1, (5,), (100,))
    assert team.parts.shape[1] >= 5 and other.parts.shape[1] >= 100
    for array in (*team.parts, team.counts):
        assert array.ctypes.data % 64 == 0 and not array.any()
    mine = shared_window.team(MPI.COMM_SELF, 5)
    mine.parts[:] = 1
    assert not team.parts.any() and not other.parts.any()
    ours.Free()
