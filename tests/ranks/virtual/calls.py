"""Programs that make most calls, for virtual ranks and for real ones."""

import numpy as np

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual import Status


def every_call(comm):
    """What a rank gets from each call."""
    rank, size, root, got = comm.Get_rank(), comm.Get_size(), comm.Get_size() - 1, {}
    mine, total = np.arange(6.0) + rank, np.zeros(6)
    whole = np.arange(3.0 * size).reshape(size, 3) * (rank + 1)

    for op in ("SUM", "MAX", "MIN", "PROD"):
        comm.Allreduce(mine, total, getattr(mpi, op))
        got["Allreduce", op] = total.tolist()
        comm.Reduce(mine, total if rank == root else None, getattr(mpi, op), root)
        got["Reduce", op] = total.tolist()
        got["allreduce", op] = comm.allreduce(rank + 2, getattr(mpi, op))
        got["reduce", op] = comm.reduce(rank + 2, getattr(mpi, op), root)
    total[:] = mine
    comm.Allreduce(mpi.IN_PLACE, total)
    long = np.arange(9001.0) * (rank + 1)
    comm.Allreduce(mpi.IN_PLACE, long)
    got["in place"] = total.tolist(), float(long.sum())

    request = comm.Iallreduce(mine, total)
    request.Wait()
    comm.Ibarrier().Wait()
    got["Iallreduce"] = total.tolist()
    row, counts = whole[rank].copy(), [r % 3 for r in range(size)]
    part = np.arange(counts[rank]) + float(rank)
    others = np.zeros_like(whole)
    comm.Alltoall(whole, others)
    got["Alltoall"] = others.tolist()
    comm.Allgather(row, others)
    got["Allgather"] = others.tolist()
    flat = np.zeros(sum(counts))
    comm.Allgatherv(part, (flat, counts))
    got["Allgatherv"] = flat.tolist()
    comm.Gather(row, others if rank == root else None, root)
    got["Gather"] = others.tolist()
    comm.Scatter(whole if rank == root else None, row, root)
    comm.Bcast(mine, root)
    comm.Barrier()
    got["copies"] = row.tolist(), mine.tolist()

    items = [(rank, r) for r in range(size)]
    got["objects"] = (
        comm.alltoall(items),
        comm.scatter(items if rank == root else None, root),
        comm.allgather({rank}),
        comm.gather(rank, root),
        comm.bcast(str(rank), root),
    )
    half = comm.Split(rank % 2, -rank)
    got["Split"] = half.rank, half.size, half.allreduce(rank)
    half.Free()
    return got


def windows(comm):
    """What a rank gets from windows."""
    rank, size, one = comm.rank, comm.size, np.ones(1)
    part = np.zeros(4)
    window = mpi.Win.Create(part, 8, comm=comm)
    window.Fence()
    window.Put(np.full(1, rank + 1.0), (rank + 1) % size, 1)
    window.Accumulate(np.full(2, rank + 1.0), 0, 2, op=mpi.SUM)
    window.Fence()
    put, read = part[1], np.zeros(1)
    window.Get(read, (rank + 1) % size, 1)
    window.Fence()
    window.Lock(0)
    seen = np.zeros(1)
    window.Get(seen, 0, 2)
    window.Flush(0)
    window.Put(seen + 1, 0, 2)
    window.Unlock(0)
    comm.Barrier()
    window.Lock_all()
    before, taken = np.zeros(1), []
    for _ in range(3):
        window.Fetch_and_op(one, before, 0, 0, mpi.SUM)
        window.Flush(0)
        taken.append(int(before[0]))
    window.Unlock_all()
    everything = sorted(number for some in comm.allgather(taken) for number in some)
    window.Lock(0, mpi.LOCK_SHARED)
    window.Get(seen, 0, 2)
    window.Unlock(0)
    window.Free()
    return [float(put), float(read[0]), float(seen[0])], everything


def common(comm):
    """What a rank gets from calls that students make, by what they are."""
    rank, size, got = comm.rank, comm.size, {}
    right, left = (rank + 1) % size, (rank - 1) % size
    mine, room = np.full(4, rank + 1.0), np.zeros(4)
    ends = {"dest": right, "sendtag": 1, "source": left, "recvtag": 1}

    def show(name, value=room):
        got[name] = np.array(value).tolist()
        room[:] = 0

    comm.Sendrecv(sendbuf=[mine, 2, mpi.DOUBLE], recvbuf=[room, mpi.DOUBLE], **ends)
    show("described")
    swapped = mine.copy()
    comm.Sendrecv_replace([swapped, 4], **ends)
    show("replaced", swapped)
    for name in ("Issend", "Irsend"):
        request = comm.Irecv(room, source=left)
        comm.Barrier()
        sent = getattr(comm, name)(mine, dest=right)
        while not request.Test():
            pass
        request.Wait()
        sent.Wait()
        show(name)
    later = comm.issend(obj={rank}, dest=right)
    show("issend", sorted(comm.recv(source=left)))
    later.wait()
    requests = [comm.Irecv([room, 4], source=left), comm.Isend(buf=mine, dest=right)]
    first = mpi.Request.Waitany(requests[:1])
    mpi.Request.Waitall(requests)
    show("any", [first, *room])
    requests = [comm.Irecv(room, source=left), comm.Isend(mine, dest=right), comm.Ibarrier()]
    while not mpi.Request.Testall(requests):
        pass
    mpi.Request.Waitall(requests)
    show("all")
    begun = comm.Recv_init(room, source=left), comm.Send_init(mine, dest=right)
    for _ in range(2):
        mpi.Request.Startall(begun)
        mpi.Request.Waitall(begun)
    show("again and again")
    status = status_of(comm)
    sent = comm.Isend(mine[:3], dest=right, tag=5)
    comm.Probe(source=left, tag=5, status=status)
    assert comm.iprobe(left, 5) and not comm.Iprobe(left, 6)
    comm.Recv(room, left, mpi.ANY_TAG, status)
    sent.Wait()
    seen = status.Get_source() == left, status.Get_tag(), status.Get_count(mpi.DOUBLE)
    show("status", [*seen, *room])

    counts = [r % 3 + 1 for r in range(size)]
    part, whole = np.arange(counts[rank]) + 10.0 * rank, np.zeros(sum(counts) + 1)
    places = np.cumsum([1, *counts[:-1]]).tolist()
    comm.Allgatherv(part, [whole, counts, places, mpi.DOUBLE])
    show("Allgatherv", whole)
    comm.Gatherv(sendbuf=part, recvbuf=[2 * whole, (counts, places)], root=0)
    all_of_it = np.zeros(sum(counts))
    comm.Gatherv(part, [all_of_it, counts] if rank == 0 else None, root=0)
    show("Gatherv", all_of_it)
    back = np.zeros_like(part)
    comm.Scatterv([all_of_it, counts] if rank == 0 else None, back, root=0)
    show("Scatterv", back)
    rows, columns = np.arange(float(size)) + 100 * rank, np.zeros(size)
    comm.Alltoallv([rows, [1] * size], [columns, [1] * size])
    show("Alltoallv", columns)
    one = np.zeros(1)
    comm.Reduce_scatter_block(rows, one)
    show("Reduce_scatter_block", one)
    comm.Scan(mine, room, op=mpi.SUM)
    show("Scan")
    comm.Exscan(mine, room)
    show("Exscan", room if rank else 0)
    comm.Allreduce([mine, mpi.DOUBLE], [room, mpi.DOUBLE], op=mpi.PROD)
    show("Allreduce")
    comm.Bcast([mine, 4, mpi.DOUBLE], root=size - 1)
    show("Bcast", mine)
    same = comm.Dup()
    got["objects"] = comm.scan(rank), comm.exscan(rank), same.allreduce(1)
    same.Free()
    line = comm.Create_cart([size], periods=[False])
    grid = comm.Create_cart([size, 1], periods=[True, False])
    beyond = [end == mpi.PROC_NULL for end in (*line.Shift(0, 1), *grid.Shift(1, 1))]
    got["grid"] = grid.Get_coords(grid.Get_rank()), grid.Shift(0, 1), grid.Get_cart_rank([-1, 0])
    got["edges"] = beyond
    line.Free()
    grid.Free()
    return got


def status_of(comm):
    """An empty status of the world that a communicator belongs to."""
    if hasattr(comm, "compute"):
        return Status()
    from mpi4py import MPI

    return MPI.Status()


UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}

# What a rank gets from its array, if rank r has row r of (P, P k) whole numbers, and from objects.
EXPECTED = {
    "Bcast": lambda a, op, root, rank: a[root],
    "Allreduce": lambda a, op, root, rank: op.reduce(a),
    "Reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "Gather": lambda a, op, root, rank: a if rank == root else None,
    "Scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "Allgather": lambda a, op, root, rank: a,
    "Alltoall": lambda a, op, root, rank: np.stack([parts(row, len(a))[rank] for row in a]),
    "bcast": lambda a, op, root, rank: a[root],
    "allreduce": lambda a, op, root, rank: op.reduce(a),
    "reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "gather": lambda a, op, root, rank: list(a) if rank == root else None,
    "scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "allgather": lambda a, op, root, rank: list(a),
    "alltoall": lambda a, op, root, rank: [parts(row, len(a))[rank] for row in a],
}


def parts(row, size):
    return row.reshape(size, -1)


def one_call(comm, name, a, op, root, begun):
    """The result of one call on a rank."""
    mine, named = a[comm.rank].copy(), {}
    if "reduce" in name.lower():
        named["op"] = getattr(mpi, op)
    if name.lower() in ("bcast", "reduce", "gather", "scatter"):
        named["root"] = root
    if name.islower():
        each = np.add if op in ("SUM", "PROD") else list  # an object that is an array, or is not
        given = list(parts(mine, comm.size)) if name in ("scatter", "alltoall") else mine
        if name in ("allreduce", "reduce") and each is list:
            return [getattr(comm, name)(int(number), **named) for number in mine]
        return getattr(comm, name)(given, **named)
    result = EXPECTED[name](a, UFUNCS[op], root, comm.rank)
    result = mine if name == "Bcast" else None if result is None else np.zeros_like(result)
    arrays = [result] if name == "Bcast" else [mine, result]
    if begun:
        request = getattr(comm, "I" + name.lower())(*arrays, **named)
        if hasattr(comm, "compute"):
            comm.compute(1e-5 * comm.rank)
        request.Wait()
    else:
        getattr(comm, name)(*arrays, **named)
    return result


def drawn(comm, n=80):
    """What a rank gets from so many calls that are drawn."""
    rng, results = np.random.default_rng(comm.size), []
    for _ in range(n):
        name, op = rng.choice(list(EXPECTED)), rng.choice(list(UFUNCS))
        root, k, begun = rng.integers(comm.size), rng.integers(3), rng.integers(2)
        a = rng.integers(1, 4, (comm.size, comm.size * k)).astype(rng.choice(["f4", "f8", "i8"]))
        result = one_call(comm, str(name), a, str(op), int(root), begun)
        results.append((str(name), str(op), np.array(result).tolist()))
    return results
