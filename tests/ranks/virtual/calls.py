"""One program that makes most calls, for virtual ranks and for real ones."""

import numpy as np

from cnnlab.ranks import mpi


def every_call(comm):
    """What a rank gets from each call."""
    rank, size, root, found = comm.Get_rank(), comm.Get_size(), comm.Get_size() - 1, {}
    mine, total = np.arange(6.0) + rank, np.zeros(6)
    whole = np.arange(3.0 * size).reshape(size, 3) * (rank + 1)

    for op in ("SUM", "MAX", "MIN", "PROD"):
        comm.Allreduce(mine, total, getattr(mpi, op))
        found["Allreduce", op] = total.tolist()
        comm.Reduce(mine, total if rank == root else None, getattr(mpi, op), root)
        found["Reduce", op] = total.tolist()
        found["allreduce", op] = comm.allreduce(rank + 2, getattr(mpi, op))
        found["reduce", op] = comm.reduce(rank + 2, getattr(mpi, op), root)
    total[:] = mine
    comm.Allreduce(mpi.IN_PLACE, total)
    long = np.arange(9001.0) * (rank + 1)
    comm.Allreduce(mpi.IN_PLACE, long)
    found["in place"] = total.tolist(), float(long.sum())

    request = comm.Iallreduce(mine, total)
    request.Wait()
    comm.Ibarrier().Wait()
    found["Iallreduce"] = total.tolist()
    row = np.zeros(3)
    comm.Reduce_scatter_block(whole, row)
    found["Reduce_scatter_block"] = row.tolist()
    counts = [r % 3 for r in range(size)]
    part = np.zeros(counts[rank])
    comm.Reduce_scatter(np.arange(float(sum(counts))) + rank, part, counts, mpi.SUM)
    found["Reduce_scatter"] = part.tolist()
    others = np.zeros_like(whole)
    comm.Alltoall(whole, others)
    found["Alltoall"] = others.tolist()
    comm.Allgather(row, others)
    found["Allgather"] = others.tolist()
    flat = np.zeros(sum(counts))
    comm.Allgatherv(part, (flat, counts))
    found["Allgatherv"] = flat.tolist()
    comm.Gather(row, others if rank == root else None, root)
    found["Gather"] = others.tolist()
    comm.Scatter(whole if rank == root else None, row, root)
    comm.Bcast(mine, root)
    comm.Barrier()
    found["copies"] = row.tolist(), mine.tolist()

    things = [(rank, r) for r in range(size)]
    found["objects"] = (
        comm.alltoall(things),
        comm.scatter(things if rank == root else None, root),
        comm.allgather({rank}),
        comm.gather(rank, root),
        comm.bcast(str(rank), root),
    )
    half = comm.Split(rank % 2, -rank)
    twin = half.Dup()
    found["Split"] = half.rank, half.size, twin.allreduce(rank)
    twin.Free()
    half.Free()
    return found


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
