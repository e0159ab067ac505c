"""Shares of batches and pieces of a pool: each image once, and a slow worker gets fewer."""

import numpy as np
import pytest

from cnnlab.distributed.pool import END, Pool, Shares
from cnnlab.ranks.schedules import block


def pieces(pool, n_workers, seconds=()):
    """All pieces, by worker, of workers who take so long for an image; one at a time in turn."""
    found, left = [[] for _ in range(n_workers)], set(range(n_workers))
    while left:
        for worker in sorted(left):
            if (piece := pool.draw(worker)) == END:
                left.remove(worker)
                continue
            found[worker].append(piece)
            pool.clock.now += (seconds or [1] * n_workers)[worker] * (piece[1] - piece[0])
            pool.back(worker, piece[1] - piece[0])
    return found


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("kind", [Shares, Pool])
@pytest.mark.parametrize(
    "n_images, batch, n_workers", [(30, 8, 3), (5, 8, 3), (7, 2, 4), (0, 0, 2)]
)
def test_every_image_is_drawn_once(kind, n_images, batch, n_workers):
    times = np.zeros(n_images, int)
    for worker in pieces(kind(n_images, batch, n_workers, Clock()), n_workers):
        for first, last in worker:
            times[first:last] += 1
    assert (times == 1).all()


def test_shares_are_blocks_of_each_batch_and_the_last_is_smaller():
    found = pieces(Shares(11, 8, 3, Clock()), 3)
    for worker, mine in enumerate(found):
        expected = [block(worker, 3, 8), tuple(8 + x for x in block(worker, 3, 3))]
        assert mine == [tuple(map(int, piece)) for piece in expected]


def test_a_pool_gives_a_worker_as_much_as_its_pace_says():
    found = pieces(Pool(4000, 40, 3, Clock()), 3, seconds=(1, 1, 5))
    lengths = [[last - first for first, last in mine] for mine in found]
    assert [mine[0] for mine in lengths] == [13, 13, 13]  # nothing is known yet
    assert [mine[-2] for mine in lengths] == [18, 18, 4]
