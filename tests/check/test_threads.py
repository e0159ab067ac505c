import numba
import numpy as np

from cnnlab import check
from cnnlab.kernels.variants import reductions


@numba.njit(parallel=True)
def bias_of_half_the_batch_a_thread(dz, db):
    """Right on one thread only: every block adds to the same sums."""
    n_blocks = numba.get_num_threads()
    db[:] = np.float32(0)
    for t in numba.prange(n_blocks):
        for n in range(len(dz) * t // n_blocks, len(dz) * (t + 1) // n_blocks):
            for f in range(len(db)):
                for p in range(dz.shape[2]):
                    for q in range(dz.shape[3]):
                        db[f] += dz[n, f, p, q]


def test_a_race_is_caught_also_if_it_is_right_on_one_thread(capsys):
    assert not check.threaded("conv_backward_bias", bias_of_half_the_batch_a_thread)
    said = capsys.readouterr().out
    assert "✗ on 2 threads (right on fewer, and wrong here)" in said
    assert "iterations 0 and 1 of the prange both write db[0]: a race" in said


def test_a_kernel_that_cannot_be_followed_is_still_run(capsys):
    def calls_a_compiled_one(dz, db):
        reductions.bias_private(dz, db, numba.get_num_threads())

    def asks_for_more_than_elements(dz, db):
        db[:] = dz.reshape(len(dz), len(db), -1).sum(2).sum(0)

    for kernel in (calls_a_compiled_one, asks_for_more_than_elements):
        assert check.threaded("conv_backward_bias", kernel)
    assert "✗" not in capsys.readouterr().out


def test_a_kernel_that_cannot_be_followed_runs_a_large_case_many_times(capsys):
    runs = 0

    def wrong_in_the_eleventh_run(dz, db):
        nonlocal runs
        reductions.bias_private(dz, db, numba.get_num_threads())
        runs += len(dz) > 100
        db[0] += runs == 11

    assert not check.threaded("conv_backward_bias", wrong_in_the_eleventh_run)
    assert (
        "wrong here): conv_backward_bias: not yet right for many images" in capsys.readouterr().out
    )


def test_threads_are_left_as_they_were(capsys):
    before = numba.get_num_threads()
    assert check.threaded("conv_backward_bias", reductions.bias_by_filter)
    assert numba.get_num_threads() == before
    assert "✓ conv_backward_bias agrees with the reference on 1 to" in capsys.readouterr().out
