"""Programs that make most calls, for virtual ranks and for real ones."""

import numpy as np

from cnnlab.ranks import mpi


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
    window.Accumulate(one, 0, 0, mpi.SUM)
    window.Unlock_all()
    comm.Barrier()
    window.Lock(0, mpi.LOCK_SHARED)
    window.Get(seen, 0, 2)
    window.Unlock(0)
    window.Free()
    return [float(put), float(read[0]), float(seen[0]), float(part[0])]


UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}

# What a rank gets from its array, if rank r has row r of (P, P k) whole numbers, and from objects.
EXPECTED = {
    "Bcast": lambda a, op, root, rank: a[root],
    "Allreduce": lambda a, op, root, rank: op.reduce(a),
    "Reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "Gather": lambda a, op, root, rank: a if rank == root else None,
    "Scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "Allgather": lambda a, op, root, rank: a,
    "bcast": lambda a, op, root, rank: a[root],
    "allreduce": lambda a, op, root, rank: op.reduce(a),
    "reduce": lambda a, op, root, rank: op.reduce(a) if rank == root else None,
    "gather": lambda a, op, root, rank: list(a) if rank == root else None,
    "scatter": lambda a, op, root, rank: parts(a[root], len(a))[rank],
    "allgather": lambda a, op, root, rank: list(a),
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
        given = list(parts(mine, comm.size)) if name == "scatter" else mine
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
