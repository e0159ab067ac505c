import numpy as np

from cnnlab import check
from cnnlab.lessons.lesson_11 import bias_atomic
from cnnlab.runtime import thread_pool


def test_it_is_right_on_many_shapes_and_loses_nothing_on_threads():
    assert check.kernel("conv_backward_bias", bias_atomic)
    ones, db = np.ones((64, 6, 24, 24), np.float32), np.empty(6, np.float32)
    with thread_pool.threads(min(2, thread_pool.size())):
        for _ in range(20):
            bias_atomic(ones, db)
            assert (db == 64 * 24 * 24).all()
