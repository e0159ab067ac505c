import numpy as np
import pytest

from cnnlab.kernels import partitioned
from cnnlab.lessons import lesson_21
from cnnlab.measure.timing import Timing
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.virtual import World


def gathers_of_a_step():
    from mpi4py import MPI

    from cnnlab.lessons import lesson_21

    result = lesson_21.samples(MPI.COMM_WORLD, 8, 3)
    return result, lesson_21.partitioned.communicator() is not None


@pytest.mark.mpi
def test_the_parts_of_a_step_are_timed_on_ranks():
    with cluster(2) as ranks:
        (result, restored), _ = ranks.run(gathers_of_a_step, timeout=300)
    assert set(result) == {"one rank", "layers", "local", "messages", "exchanges", "kernels"}
    assert all(len(group) == 3 for group in result.values()) and restored
    assert all(a < b for a, b in zip(result["kernels"], result["local"], strict=True))


@pytest.mark.parametrize("counts", [[3], [2, 0], [2, 0, 3, 1]])
def test_an_exchange_gathers_what_an_allgather_does(counts):
    def program(comm):
        part, n = np.full(counts[comm.rank], comm.rank, np.float32), sum(counts)
        result, expected = np.full((2, n), -1, np.float32)
        lesson_21.exchange(comm, part, (result, counts))
        comm.Allgatherv(part, (expected, counts))
        return result.tolist() == expected.tolist() == np.repeat(range(comm.size), counts).tolist()

    assert all(World(len(counts)).run(program))


def test_what_was_put_in_place_is_taken_out_again():
    before = partitioned.vector
    with pytest.raises(KeyError), lesson_21.in_place(vector=None):
        assert partitioned.vector is None
        raise KeyError
    assert partitioned.vector is before


def test_a_silent_communicator_notes_what_it_should_have_gathered():
    comm = type("Comm", (), {"rank": 0, "size": 2})()
    silent = lesson_21.Silent(comm)
    silent.Allgatherv(None, (None, [3, 4]))
    assert silent.asked == [[3, 4]]


def test_what_parts_do_not_explain_is_the_rest():
    seconds = {"layers": 10.0, "local": 6.0, "messages": 3.0, "kernels": 4.0}
    group = {name: Timing(name, (s,)) for name, s in seconds.items()}
    cut = {"kernels": 4, "copies": 2, "messages": 3, "the rest": 1}
    assert lesson_21.parts(group) == cut
    group["layers"] = Timing("layers", (8.0,))
    assert lesson_21.parts(group) == cut | {"the rest": 0}
