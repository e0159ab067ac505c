import contextlib

import pytest

from cnnlab.check import collective
from cnnlab.plots import challenge
from cnnlab.ranks.cluster import cluster


def right(comm, array):
    import numpy as np

    part = array.copy()
    comm.Reduce(part, array if comm.rank == 0 else None)
    comm.Bcast(array)
    assert isinstance(array, np.ndarray)


def wrong(comm, array):
    array *= comm.size


def unfinished(comm, array): ...


def test_an_empty_answer_is_not_timed(capsys):
    assert challenge.challenge_ranks("allreduce", unfinished) is None
    assert "still open" in capsys.readouterr().out


@pytest.mark.mpi
def test_a_wrong_answer_is_not_timed_and_a_right_one_is_beside_the_library(capsys, monkeypatch):
    for answer in (right, wrong):
        answer.__module__ = "__main__"
    with cluster(collective.MOST) as ranks:  # once, as it takes long
        for module in (collective, challenge):
            monkeypatch.setattr(module, "cluster", lambda n_ranks: contextlib.nullcontext(ranks))
        assert challenge.challenge_ranks("allreduce", wrong, n=10) is None
        assert "not yet right" in capsys.readouterr().out
        ax = challenge.challenge_ranks("allreduce", right, {"again": right}, n=10, repeats=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["again", "MPI", "mine"]
