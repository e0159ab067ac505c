import numpy as np
import pytest

from cnnlab.kernels.registers import LANES
from cnnlab.kernels.workers import ALONE, FEW, Workers, allreduce, share


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_images", [0, 1, 5, 16, 31, 50, 112, 113, 200])
@pytest.mark.parametrize("few", [None, True])
def test_every_image_is_in_one_worker_s_share(size, n_images, few):
    chosen = np.arange(n_images) * 3
    shares = [share(chosen, Workers(rank, size), few) for rank in range(size)]
    assert (np.concatenate(shares) == chosen).all()
    unit = LANES if few is None or n_images >= FEW * size else 1
    assert max(map(len, shares)) - min(map(len, shares)) <= unit
    assert all(len(block) % unit == 0 for block in shares[:-1])


@pytest.mark.parametrize("n_images", [0, 5, 16, 50, 112, 200])
def test_threads_share_what_is_their_rank_s(n_images):
    chosen, threads = np.arange(n_images), {0: 3, 1: 2}  # ranks may have as many as they like
    for rank, n_threads in threads.items():
        shares = [
            share(chosen, Workers(thread, n_threads, rank_of=(rank, 2)))
            for thread in range(n_threads)
        ]
        assert (np.concatenate(shares) == share(chosen, Workers(rank, 2))).all()


def test_alone_a_worker_takes_everything_and_keeps_its_gradients():
    chosen, grads = np.arange(5), np.arange(4, dtype=np.float32)
    assert (share(chosen, ALONE) == chosen).all()
    assert (allreduce(grads, ALONE) == np.arange(4)).all()
