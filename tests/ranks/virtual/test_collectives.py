"""Collectives in the virtual world; several of these programs also run on real ranks."""

import numpy as np
import pytest

from cnnlab.ranks.virtual import World

SIZES = [*range(1, 18)]


def everything(comm):
    """Each collective once; what this rank got."""
    mine = np.arange(5, dtype=np.float32) + comm.rank
    total, row, part = np.empty_like(mine), np.empty((comm.size, 5), np.float32), np.empty(5)
    comm.Allreduce(mine, total)
    comm.Allgather(mine, row)
    comm.Barrier()
    root = comm.size - 1
    copy = np.full(3, comm.rank, np.float32)
    comm.Bcast(copy, root)
    summed = np.zeros(5, np.float32) if comm.rank == root else None
    comm.Reduce(mine, summed, root=root)
    comm.Scatter(np.ones((comm.size, 5)) if comm.rank == root else None, part, root)
    gathered = np.zeros((comm.size, 5), np.float32) if comm.rank == 0 else None
    comm.Gather(mine, gathered)
    objects = comm.allgather({comm.rank}), comm.gather(comm.rank, root), comm.bcast(comm.rank, root)
    half = comm.Split(comm.rank % 2, -comm.rank)
    arrays = total, row, copy, summed, part, gathered
    told = half.rank, half.size, half.allreduce(comm.rank), comm.allreduce(1)
    return [None if a is None else a.tolist() for a in arrays], objects, told


@pytest.mark.parametrize("size", SIZES)
def test_collectives_do_what_mpi_says(size):
    rows = [[float(i + rank) for i in range(5)] for rank in range(size)]
    sums = [sum(column) for column in zip(*rows, strict=True)]
    root = size - 1
    for rank, (arrays, objects, told) in enumerate(World(size).run(everything)):
        total, row, copy, summed, part, gathered = arrays
        assert total == sums and row == rows and copy == [root] * 3 and part == [1] * 5
        assert summed == (sums if rank == root else None)
        assert gathered == (rows if rank == 0 else None)
        everybody = list(range(size))
        assert objects == ([{r} for r in everybody], everybody if rank == root else None, root)
        mine = [r for r in everybody if r % 2 == rank % 2]
        assert told == (mine[::-1].index(rank), len(mine), sum(mine), size)


@pytest.mark.parametrize("n", [1000, 40_000])
@pytest.mark.parametrize("size", [3, 8])
def test_sums_have_the_same_bits_on_all_ranks_and_in_every_run(size, n):
    def program(comm):
        a = np.random.default_rng(comm.rank).random(n, np.float32)
        comm.Allreduce(a.copy(), a)
        return a.tobytes()

    first, second = World(size).run(program), World(size, speed=range(1, size + 1)).run(program)
    assert len({*first, *second}) == 1


def test_blocks_of_different_lengths_are_gathered_or_their_counts_refused():
    def program(comm, counts):
        whole = np.zeros(6)
        comm.Allgatherv(np.full([1, 0, 5][comm.rank], comm.rank), (whole, counts))
        return whole.tolist()

    assert World(3).run(program, [1, 0, 5]) == [[0, 2, 2, 2, 2, 2]] * 3
    for wrong in ([1, 5], [1, 0, 4]):
        with pytest.raises(ValueError, match="counts: expected 3 that add up to 6, got"):
            World(3).run(program, wrong)
