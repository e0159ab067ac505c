import numpy as np

from cnnlab.kernels import allreduce
from cnnlab.measure import scaling
from cnnlab.runtime import thread_pool


def test_every_thread_comes_to_every_barrier():
    counts = allreduce.counts()
    with thread_pool.threads(min(2, thread_pool.size())) as n_threads:
        parts = np.zeros((n_threads, 16), np.float32)
        scaling.barriers(parts, np.zeros(5, np.float32), counts, 7)
    assert counts[allreduce.BARRIER] == 7 * n_threads


def test_a_law_is_fitted_only_to_more_points_than_it_has_numbers():
    counts, relative = [1, 2, 3, 4], [1, 0.6, 0.4667, 0.4]
    fitted = [scaling.laws(counts[:n], relative[:n]) for n in (1, 2, 3, 4)]
    assert [result["amdahl"] is not None for result in fitted] == [False, False, True, True]
    assert [result["usl"] is not None for result in fitted] == [False, False, False, True]
    np.testing.assert_allclose(fitted[3]["amdahl"], 0.2, atol=1e-3)
