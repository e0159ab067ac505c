"""A program under mpiexec: on a slowed network, every rank gets what it gets on MPI's."""

import sys
import time

import numpy as np
from mpi4py import MPI

from cnnlab.ranks import collectives
from cnnlab.ranks.schedules import SCHEDULES
from cnnlab.ranks.slow import network

LATENCY, BANDWIDTH = 1e-3, 1e8


def same_as_mpi(comm, real):
    """Each collective."""
    rank, size = real.rank, real.size
    for n in (1, 7, 20_000):
        mine = np.random.default_rng([rank, n]).integers(0, 99, n).astype(np.float32)
        ours, theirs = np.empty((2, n), np.float32)
        for op in (MPI.SUM, MPI.MAX):
            comm.Allreduce(mine, ours, op)
            real.Allreduce(mine, theirs, op)
            np.testing.assert_array_equal(ours, theirs)
        for schedule in SCHEDULES:
            ours[:] = mine
            collectives.allreduce(comm, ours, schedule)
            np.testing.assert_array_equal(ours, real.allreduce(mine))
        sums = np.empty((3, n), np.float32)
        many = [comm.Iallreduce(mine * k, sums[k]) for k in range(3)]
        for k in (2, 0, 1):  # waited for in another order
            many[k].Wait()
            np.testing.assert_array_equal(sums[k], k * real.allreduce(mine))
        result = np.empty((size, n), np.float32)
        comm.Allgather(mine, result)
        np.testing.assert_array_equal(result, real.allgather(mine))
        root = size - 1
        comm.Bcast(mine, root)
        np.testing.assert_array_equal(mine, result[root])
        comm.Reduce(result[rank], ours, root=root)
        if rank == root:
            np.testing.assert_allclose(ours, result.sum(0), rtol=1e-6)
    comm.Barrier()
    assert comm.allgather(rank) == list(range(size)) and comm.allreduce(rank) == sum(range(size))
    assert comm.bcast("x" * 2_000_000 if rank == 0 else None)[-1] == "x"
    half = comm.Split(rank % 2, -rank)
    assert half.allgather(rank) == [r for r in range(size)[::-1] if r % 2 == rank % 2]
    half.Free()


def in_order_and_whole(comm):
    """Many messages to one rank, which takes them from anybody: none is lost or overtakes."""
    n = 20
    if comm.rank == 0:
        last, status = {}, MPI.Status()
        for _ in range(n * (comm.size - 1)):
            a = np.empty(2)
            comm.Recv(a, status=status)
            assert status.Get_source() == a[0] and status.Get_tag() == a[0] + 1
            assert status.Get_count(MPI.DOUBLE) == 2
            assert a[1] == last.get(a[0], -1) + 1
            last[a[0]] = a[1]
        assert last == {rank: n - 1 for rank in range(1, comm.size)}
    else:
        for k in range(n):
            comm.Send(np.array([comm.rank, k], float), 0, comm.rank + 1)
    comm.Barrier()  # from anybody ends here
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sends = [comm.Isend(np.full(3, k), right, k) for k in range(4)]
    places = np.empty((4, 3), int)
    receives = [comm.Irecv(places[k], left, k) for k in range(4)]
    for k in (3, 1, 0, 2):  # by tag
        receives[k].Wait()
        assert (places[k] == k).all()
    type(sends[0]).Waitall(sends)
    objects = [comm.irecv(source=left) for _ in range(2)]
    for k in range(2):
        comm.send(["object", k], right)
    assert objects[1].wait() == ["object", 1] and objects[0].wait() == ["object", 0]


def takes_its_time(comm):
    """A message is seen no earlier than the link says, and those of one rank go out in turn."""
    n = 100_000
    if comm.rank == 0:
        begin = time.perf_counter()
        requests = [comm.Isend(np.zeros(n, np.uint8), 1, k) for k in range(3)]
        at_once = time.perf_counter() - begin
        comm.send((begin, at_once), 1)
        type(requests[0]).Waitall(requests)
        assert time.perf_counter() - begin >= 3 * n / BANDWIDTH
    elif comm.rank == 1:
        seen = []
        for k in range(3):
            comm.Recv(np.empty(n, np.uint8), 0, k)
            seen.append(time.perf_counter())
        begin, at_once = comm.recv(source=0)
        assert all(t - begin >= LATENCY + (k + 1) * n / BANDWIDTH for k, t in enumerate(seen))
    early = comm.irecv(source=(comm.rank - 1) % comm.size)
    comm.isend(time.perf_counter(), (comm.rank + 1) % comm.size)
    while not early.Test():
        pass
    assert time.perf_counter() - early.wait() > LATENCY


real = MPI.COMM_WORLD
with network(LATENCY, BANDWIDTH) as comm:
    same_as_mpi(comm, real)
    in_order_and_whole(comm)
    if comm.size > 1:
        takes_its_time(comm)
    for name in ("Spawn", "Split_type"):
        try:
            getattr(comm, name)
        except AttributeError as error:
            assert str(error) == f"comm.{name}: a slowed network does not know it"
    try:
        comm.Send(np.zeros(1), comm.size)
    except ValueError as error:
        assert str(error).startswith("dest: expected a rank from 0 to")
    else:
        sys.exit("a rank that is not there")
print("as on MPI", flush=True)
