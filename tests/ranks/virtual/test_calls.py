"""The calls of virtual ranks: they give what NumPy says, and what mpi4py gives on real ranks."""

import pickle
import re
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual import Deadlock, Link, Status, World, examine
from cnnlab.ranks.virtual.messages import Request
from tests.ranks.programs import run
from tests.ranks.virtual.calls import EXPECTED, FIFTY, UFUNCS, drawn, listed, one_call, windows


@given(draw.integers(1, 9), draw.integers(0, 3), draw.booleans(), draw.data())
@settings(max_examples=40)
def test_programs_of_collectives_give_what_numpy_says(size, k, begun, data):
    calls = data.draw(
        draw.lists(
            draw.tuples(
                draw.sampled_from(list(EXPECTED)),
                draw.sampled_from(list(UFUNCS)),
                draw.integers(0, size - 1),
                draw.sampled_from([np.float64, np.float32, np.int64]),
            ),
            min_size=1,
            max_size=5,
        )
    )
    rng = np.random.default_rng(size)
    numbers = [rng.integers(1, 4, (size, size * k)).astype(dtype) for *_, dtype in calls]

    def program(comm):
        pairs = zip(calls, numbers, strict=True)
        return [one_call(comm, name, a, op, root, begun) for (name, op, root, _), a in pairs]

    for rank, results in enumerate(World(size, jitter=0.5).run(program)):
        for (name, op, root, _), a, result in zip(calls, numbers, results, strict=True):
            expected = EXPECTED[name](a, UFUNCS[op], root, rank)
            if name == "Reduce" and rank != root:
                expected = result  # not looked at
            np.testing.assert_array_equal(result, expected, err_msg=f"{name} by {op} to {root}")


MESSAGES = draw.lists(draw.integers(0, 2), min_size=1, max_size=8)  # their tags, in order


@given(MESSAGES, draw.booleans(), draw.booleans(), draw.data())
def test_a_receive_takes_the_first_message_that_fits(tags, posted_first, eager, data):
    """Messages of one rank do not overtake each other, whatever is asked for."""
    left, asked, expected = list(enumerate(tags)), [], []
    while left:
        tag = data.draw(draw.sampled_from([tag for _, tag in left] + [mpi.ANY_TAG]))
        source = data.draw(draw.sampled_from([0, mpi.ANY_SOURCE]))
        first = next(one for one in left if tag in (one[1], mpi.ANY_TAG))
        left.remove(first)
        asked.append((source, tag))
        expected.append(first[0])

    def program(comm):
        if comm.rank == 0:
            comm.compute(1e-3 * posted_first)
            sends = [comm.Isend(np.full(1, k), 1, tag) for k, tag in enumerate(tags)]
            return Request.Waitall(sends)
        comm.compute(1e-3 * (not posted_first))
        places = np.zeros((len(asked), 1), int)
        pairs = zip(places, asked, strict=True)
        Request.Waitall([comm.Irecv(place, *ends) for place, ends in pairs])
        return places[:, 0].tolist()

    assert World(2, Link(eager=64 * eager)).run(program)[1] == expected


# --- on real ranks --------------------------------------------------------------------------------

MOST = 9
PROGRAMS = drawn, windows
SIZES = """
import pickle
import sys

from mpi4py import MPI
from tests.ranks.virtual.calls import drawn, fifty, windows

results = {}
for size in range(1, 10):
    comm = MPI.COMM_WORLD.Split(0 if MPI.COMM_WORLD.rank < size else MPI.UNDEFINED)
    if comm != MPI.COMM_NULL:
        more = (windows(comm), fifty(comm)) if size in (2, 3, 8) else ()
        results[size] = drawn(comm), *more
        comm.Free()
results = MPI.COMM_WORLD.gather(results)
if results:
    with open(sys.argv[1], "wb") as file:
        pickle.dump(results, file)
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """What each rank got, by the number of ranks: one job, whose ranks split into fewer."""
    path = tmp_path_factory.mktemp("calls") / "results"
    run(MOST, "-c", SIZES, str(path))
    return pickle.loads(path.read_bytes())


@pytest.mark.mpi
@pytest.mark.parametrize("size", range(1, MOST + 1))
def test_virtual_ranks_get_what_real_ones_get(real, size):
    for place, program in enumerate(PROGRAMS[: len(real[0][size])]):
        for rank, got in enumerate(World(size).run(program)):
            assert got == real[rank][size][place], f"{program.__name__} on rank {rank} of {size}"


@pytest.mark.mpi
@pytest.mark.parametrize("size", [2, 3, 8])
def test_most_of_fifty_calls_do_what_real_ones_do_and_the_rest_are_refused_by_name(real, size):
    expected, right = [real[rank][size][-1] for rank in range(size)], 0
    for name, call in FIFTY.items():
        try:
            got = World(size).run(lambda comm, call=call: listed(call(comm)))
        except (AttributeError, TypeError, ValueError) as error:
            assert re.match(r"(comm|mpi|win|request)\.\w+: |\w+: expected", str(error)), name
        else:
            assert got == [results[name] for results in expected], name
            right += 1
    assert len(FIFTY) == 50 and right >= 45


# --- the same bits, and copies --------------------------------------------------------------------


@pytest.mark.parametrize("n", [1000, 40_000])
@pytest.mark.parametrize("size", [3, 8])
def test_sums_have_the_same_bits_on_all_ranks_and_in_every_run(size, n):
    def program(comm):
        a = np.random.default_rng(comm.rank).random(n, np.float32)
        comm.Allreduce(a.copy(), a)
        return a.tobytes()

    uneven = {rank: rank + 1.0 for rank in range(size)}
    first, second = World(size).run(program), World(size, speed=uneven).run(program)
    assert len({*first, *second}) == 1


@pytest.mark.parametrize("name", ["bcast", "gather", "scatter", "allgather", "alltoall", "reduce"])
def test_a_rank_has_a_copy_of_its_own_object_as_of_the_others(name):
    def program(comm):
        mine = [comm.rank]
        each = [mine] * comm.size if name in ("scatter", "alltoall") else mine
        result = getattr(comm, name)(each)
        mine.append("changed")
        return result

    assert "changed" not in repr(World(1).run(program)) + repr(World(3).run(program))


# --- what is refused ------------------------------------------------------------------------------

WITH_TWO = ["Allreduce", "Reduce", "Gather", "Scatter", "Allgather", "Alltoall"]


@given(
    draw.sampled_from([*WITH_TWO, "Iallreduce", "Ialltoall"]),
    draw.sampled_from(["longer", "shorter", "dtype", "strided", "read-only", "same"]),
    draw.integers(1, 4),
)
def test_the_two_arrays_of_a_call_must_fit_each_other(name, wrong, size):
    """MPI raises, or computes nonsense: here each is refused, before anything is sent."""
    kind = name.lower().removeprefix("i")
    lengths = {"gather": (2, 2 * size), "allgather": (2, 2 * size), "scatter": (2 * size, 2)}
    n, m = lengths.get(kind, (2 * size, 2 * size))
    sent, received = np.ones(n), np.zeros(m + {"longer": size, "shorter": -1}.get(wrong, 0))
    received = {
        "dtype": received.astype(int),
        "strided": np.zeros((m, 2))[:, 0],
        "read-only": np.frombuffer(bytes(8 * m)),
        "same": sent[:m] if m <= n else np.resize(sent, m),
    }.get(wrong, received)
    if wrong == "same" and m > n:
        sent = received[:n]

    def program(comm):
        getattr(comm, name)(sent, received)

    with pytest.raises(ValueError, match=r"^(recvbuf|sendbuf): expected ") as raised:
        World(size).run(program)
    assert [fault.kind for fault in raised.value.faults] == ["invalid parameter"]


def other_reductions(comm):
    comm.Allreduce(np.ones(2), np.ones(2), ("SUM", "MAX")[comm.rank])


def array_as_an_object(comm):
    comm.recv(source=0) if comm.rank else comm.Send(np.zeros(4), 1)


def counts_of_less(comm):
    comm.Allgatherv(np.zeros(3), (np.zeros(6), [3, 2]))


def no_counts(comm):
    comm.Allgatherv(np.zeros(3), np.zeros(6))


def another_type(comm):
    comm.Bcast([np.zeros(2), mpi.FLOAT])


def too_many(comm):
    comm.Bcast([np.zeros(2), 3])


def beyond(comm):
    comm.Scatterv([np.zeros(3), [2, 2]], np.zeros(2))


def nobody(comm):
    comm.Split(-32766 if comm.rank else 0)


def summed(dtype, op):
    return lambda comm: comm.Allreduce(np.ones(2, dtype), np.ones(2, dtype), op)


def parts_of_another_dtype(comm):
    comm.Allgatherv(np.ones(1), [np.ones(2, int), [1, 1]])


def plain_list(comm):
    comm.Bcast([1.0, 2.0])


def one_too_many(comm):
    comm.scatter([1, 2, 3])


@pytest.mark.parametrize(
    "program, text",
    [
        (other_reductions, "Allreduce of 2 float64 by SUM as on rank 0, got .* by MAX"),
        (array_as_an_object, "receive: expected an object, got float64 from rank 0, sent at test_"),
        (no_counts, r"recvbuf: expected .array, counts., with 2 counts, got \[\]"),
        (counts_of_less, "sendbuf: expected 2 elements, as counted, got 3"),
        (another_type, "buf: expected MPI's type of float64, got that of float32"),
        (too_many, "buf: expected a count of at most 2, got .3."),
        (beyond, r"sendbuf: expected parts within 3 elements, got \[2, 2\]"),
        (nobody, "color: expected at least 0, .* got -32766"),
        (summed(complex, "MAX"), "op: expected one for complex128, got MAX"),
        (summed(bool, "SUM"), "op: expected one for bool, got SUM"),
        (summed(float, "LOR"), "op: expected one for float64, got LOR"),
        (parts_of_another_dtype, "recvbuf: expected float64, got int64"),
        (lambda comm: comm.Alltoall("IN_PLACE", np.ones(2)), "sendbuf: .* array, got IN_PLACE"),
        (plain_list, "buf: expected an array, got list"),
        (one_too_many, "sendobj: expected one for each of 2, got 3"),
    ],
)
def test_what_mpi_may_let_pass_is_refused(program, text):
    with pytest.raises((TypeError, ValueError), match=text) as raised:
        World(2).run(program)
    assert any("in the virtual world" in note for note in raised.value.__notes__)


# --- sources, statuses, requests ------------------------------------------------------------------


@pytest.mark.parametrize("running", [False, True])
def test_any_is_what_the_mpi_that_runs_calls_so(running, monkeypatch):
    """Open MPI's numbers, which are not MPICH's."""

    class MPI:
        ANY_SOURCE, ANY_TAG, PROC_NULL = -1, -1, -2

    if running:
        monkeypatch.setitem(sys.modules, "mpi4py.MPI", MPI)
    else:
        monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)

    def program(comm):
        if comm.rank:
            return comm.send(comm.rank, 0, tag=comm.rank)
        return sorted(comm.recv(source=mpi.ANY_SOURCE, tag=mpi.ANY_TAG) for _ in range(2))

    assert World(3).run(program)[0] == [1, 2]


def test_a_message_to_or_from_no_rank_is_done_at_once(monkeypatch):
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)  # then −1 is MPICH's PROC_NULL

    def program(comm):
        left, right = comm.rank - 1, comm.rank + 1 if comm.rank + 1 < comm.size else mpi.PROC_NULL
        a, status, last = np.full(1, comm.rank), Status(), Status()
        b, c = a.copy(), a.copy()
        comm.Sendrecv(a, right, 0, b, left, 0)
        comm.Sendrecv(a, left, 1, c, right, 1, status)
        comm.Isend(a, mpi.PROC_NULL).Wait()
        assert comm.recv(source=mpi.PROC_NULL) is None
        assert comm.probe(mpi.PROC_NULL, status=last) and last.source == mpi.PROC_NULL
        return b[0], c[0], status.Get_count() if right == mpi.PROC_NULL else 0

    assert World(3).run(program) == [(0, 1, 0), (0, 2, 0), (1, 2, 0)]
    assert not examine(program, 3)


def test_all_are_waited_for_at_once():
    def program(comm):
        peers, status = [rank for rank in range(comm.size) if rank != comm.rank], Status()
        requests = [comm.irecv(source=rank) for rank in peers]
        sends = [comm.isend(comm.rank, dest=rank) for rank in peers]
        Request.Waitall(sends)
        assert Request.waitall(requests) == peers
        a = np.zeros(1)
        waiting = [comm.Irecv(a, comm.rank), comm.Isend(np.ones(1), comm.rank, 4)]
        Request.Waitall(waiting, [status, Status()])
        return status.tag, a[0]

    assert World(3).run(program) == 3 * [(4, 1)]


def test_who_sends_synchronously_waits_for_the_receiver_and_who_buffers_for_nobody():
    def both(comm, name, n):
        getattr(comm, name)(np.zeros(n), 1 - comm.rank)
        comm.Recv(np.zeros(n), 1 - comm.rank)

    World(2).run(both, "Send", 1)
    World(2).run(both, "Bsend", 100_000)
    for name, n in (("Ssend", 1), ("Send", 100_000)):
        with pytest.raises(Deadlock):
            World(2).run(both, name, n)
    with pytest.raises(RuntimeError, match=r"comm\.Abort\(3\) was called on rank 0"):
        World(2).run(lambda comm: comm.Abort(3))


def test_the_clock_of_mpi_is_that_of_the_virtual_rank():
    def program(comm):
        begin = mpi.Wtime()
        comm.compute(2.0 + comm.rank)
        return mpi.Wtime() - begin

    assert World(2).run(program) == [2.0, 3.0]
    begin = time.perf_counter()
    assert abs(mpi.Wtime() - mpi.Wtime()) <= time.perf_counter() - begin < 2.0


# --- collectives beside computing -----------------------------------------------------------------

SLOW = Link(latency=0.1, bandwidth=1e6)


def overlapped(comm, seconds):
    a, total = np.arange(9.0) + comm.rank, np.zeros(9)
    request = comm.Iallreduce(a, total)
    comm.compute(seconds)
    early = total.sum()
    request.Wait()
    return comm.clock(), early, total.tolist()


@pytest.mark.parametrize("size", [2, 5, 8])
def test_messages_are_under_way_while_the_rank_computes(size):
    alone = max(clock for clock, *_ in World(size, SLOW).run(overlapped, 0.0))
    assert alone > 0.1
    for clock, early, total in World(size, SLOW).run(overlapped, alone + 1):
        assert clock == pytest.approx(alone + 1) and early == 0
        assert total == [sum(i + r for r in range(size)) for i in range(9)]
    half = max(clock for clock, *_ in World(size, SLOW).run(overlapped, alone / 2))
    assert half == pytest.approx(alone)


def test_several_may_be_under_way_and_be_asked_for():
    def program(comm):
        a, totals = np.ones(20_000), np.zeros((3, 20_000))
        requests = [comm.Iallreduce(a, total) for total in totals]
        last, n = comm.Ibarrier(), 0
        while not last.Test():
            comm.compute(0.01)
            n += 1
        Request.Waitall(requests)
        return n > 3, totals.min(), totals.max()

    assert World(4, SLOW).run(program) == [(True, 4, 4)] * 4


@pytest.mark.parametrize("which", ["sent", "received"])
def test_arrays_of_a_collective_under_way_are_to_be_left_alone(which):
    def program(comm):
        arrays = {"sent": np.ones(4), "received": np.zeros(4)}
        request = comm.Iallreduce(*arrays.values())
        arrays[which][0] = 7
        request.Wait()

    text = r"left alone until Wait, .*changed one of this Iallreduce"
    with pytest.raises(ValueError, match=text):
        World(2).run(program)
    with pytest.raises(RuntimeError, match="Iallreduce that is never waited for"):
        World(2).run(lambda comm: comm.Iallreduce(np.ones(2), np.ones(2)) and None)
