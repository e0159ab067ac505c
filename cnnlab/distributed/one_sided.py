"""Asynchronous training without a server's program: parameters in windows, and all reach in."""

import numpy as np

from cnnlab.ranks import mpi
from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Replica


def one_sided(comm, replica: Replica, order: np.ndarray, size: int, n_shards: int = 1) -> None:
    """Train on the images number `order`; every rank draws pieces of `size` until none is left.

    Each of the first `n_shards` ranks has a shard of the parameters in its window; in front of it
    lies an int64, on rank 0 the first image not drawn yet. For each shard in turn, a rank locks it,
    adds its step and reads what is there. In the end all ranks have the same parameters.
    """
    params, step = replica.params.flat, np.zeros_like(replica.params.flat)
    shards = [slice(*block(rank, n_shards, params.size)) for rank in range(n_shards)]
    mine = params[shards[comm.rank]].copy() if comm.rank < n_shards else params[:0]
    window = mpi.Win.Allocate(8 + mine.nbytes, comm=comm)
    memory = np.frombuffer(window.tomemory(), np.uint8)
    memory[:8], memory[8:] = 0, mine.view(np.uint8)
    first, several = np.zeros(1, np.int64), np.array([size])
    comm.Barrier()
    while first[0] < len(order):
        for shard in range(n_shards):
            at = (comm.rank + shard) % n_shards  # so that not all begin at one
            window.Lock(at)
            window.Accumulate(step[shards[at]], at, 8, op=mpi.SUM)
            window.Flush(at)
            window.Get(params[shards[at]], at, 8)
            if at == 0:
                window.Fetch_and_op(several, first, 0, 0, op=mpi.SUM)
            window.Unlock(at)
        replica.gradients(order[first[0] : first[0] + size])
        step[:] = -replica.optimizer.rate / replica.batch * replica.grads.flat
    comm.Barrier()  # all steps are in
    for at, shard in enumerate(shards):
        window.Lock(at, mpi.LOCK_SHARED)
        window.Get(params[shard], at, 8)
        window.Unlock(at)
    window.Free()
