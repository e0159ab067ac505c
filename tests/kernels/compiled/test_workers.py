import numpy as np
import pytest

from cnnlab.kernels.compiled.workers import ALONE, Workers, allreduce, share


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_images", [0, 1, 5, 16, 31, 50, 112, 113, 200])
def test_every_image_is_in_one_worker_s_share(size, n_images):
    chosen = np.arange(n_images) * 3
    shares = [share(chosen, Workers(rank, size)) for rank in range(size)]
    assert (np.concatenate(shares) == chosen).all()
    unit = 16 if n_images >= 16 * size else 1
    assert max(map(len, shares)) - min(map(len, shares)) <= unit
    assert all(len(block) % unit == 0 for block in shares[:-1])


def test_alone_a_worker_takes_everything_and_keeps_its_gradients():
    chosen, grads = np.arange(5), np.arange(4, dtype=np.float32)
    assert (share(chosen, ALONE) == chosen).all()
    assert (allreduce(grads, ALONE) == np.arange(4)).all()
