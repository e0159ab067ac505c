import numba
import numpy as np
import pytest

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


def on_elements(dz, db):
    for f in range(len(db)):
        db[f] = dz[0, f, 0, 0]


def with_an_array_of_its_own(dz, db):
    db[0] = np.zeros(1)[0]


def with_methods_of_an_array(dz, db):
    db[0] = dz.sum()


class WrongInTheEleventhRun:
    """A kernel that is wrong in its eleventh run on many images; its loops are those of another."""

    def __init__(self, loops):
        self.py_func, self.runs = loops, 0

    def __call__(self, dz, db):
        db[:] = dz.sum((0, 2, 3), np.float64)
        self.runs += len(dz) > 100
        db[0] += self.runs == 11


@pytest.mark.parametrize(
    "loops, runs_often",
    [(on_elements, False), (with_an_array_of_its_own, True), (with_methods_of_an_array, True)],
)
def test_a_large_case_runs_often_where_loops_do_not_tell_all(loops, runs_often, capsys):
    right = check.threaded("conv_backward_bias", WrongInTheEleventhRun(loops))
    said = capsys.readouterr().out
    assert right is not runs_often
    assert ("wrong here): conv_backward_bias: not yet right for many images" in said) is runs_often


def test_threads_are_left_as_they_were(capsys):
    before = numba.get_num_threads()
    assert check.threaded("conv_backward_bias", reductions.bias_by_filter)
    assert numba.get_num_threads() == before
    assert "✓ conv_backward_bias agrees with the reference on 1 to" in capsys.readouterr().out
