import contextlib

import pytest

from cnnlab.check import collective
from cnnlab.plots import challenge
from cnnlab.ranks.cluster import cluster


def right(comm, array):
    part, other = array.copy(), array.copy()
    for shift in range(1, comm.size):
        to, source = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        comm.Sendrecv(part, to, recvbuf=other, source=source)
        array += other


def by_the_library(comm, array):
    comm.Allreduce(array.copy(), array)


def wrong(comm, array):
    array *= comm.size


def unfinished(comm, array): ...


def test_an_empty_answer_is_not_timed(capsys):
    assert challenge.challenge_ranks("allreduce", unfinished) is None
    assert "still open" in capsys.readouterr().out


@pytest.mark.mpi
def test_a_wrong_answer_is_not_timed_and_a_right_one_is_beside_the_library(capsys, monkeypatch):
    for answer in (right, wrong, by_the_library):
        answer.__module__ = "__main__"
    with cluster(collective.MOST) as ranks:  # once, as it takes long
        for module in (collective, challenge):
            monkeypatch.setattr(module, "cluster", lambda n_ranks: contextlib.nullcontext(ranks))
        assert challenge.challenge_ranks("allreduce", wrong, n=10) is None
        assert "not yet right" in capsys.readouterr().out
        assert challenge.challenge_ranks("allreduce", by_the_library, n=10) is None
        assert "Allreduce: expected Send and Recv, got a collective" in capsys.readouterr().out
        ax = challenge.challenge_ranks("allreduce", right, {"again": right}, n=10, repeats=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["again", "MPI", "mine"]
