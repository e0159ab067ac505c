"""What is drawn while a class is graded."""

import numpy as np

from cnnlab.course.grading.secrecy import secret


def test_a_secret_seed_decides_all_that_is_drawn():
    def drawn(seed):
        with secret(seed):
            return [
                np.random.default_rng(*given).random() for given in ((), (), (0,), (0,), ([1, 2],))
            ]

    one = drawn(1)
    assert one == drawn(1) and one[2] == one[3] and len({*one, *drawn(2)}) == 8
    assert np.random.default_rng(0).random() not in one
