import numba
import numpy as np
import pytest

from cnnlab.check import threads


def rejected(kernel):
    verdict = threads.kernel("conv_backward_bias", kernel)
    assert not verdict
    return str(verdict)


@numba.njit(parallel=True)
def bias_by_filter(dz, db):
    for f in numba.prange(len(db)):
        total = np.float32(0)
        for n in range(len(dz)):
            for gradient in dz[n, f].flat:
                total += gradient
        db[f] = total


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


def test_a_race_is_caught_also_if_it_is_right_on_one_thread():
    said = rejected(bias_of_half_the_batch_a_thread)
    assert said.startswith("✗ on 2 threads (right on fewer, and wrong here)")
    assert "iterations 0 and 1 of the prange both write db[0]: a race" in said


@pytest.mark.parametrize("decorated", [lambda f: f, numba.njit, numba.njit(fastmath=True)])
def test_a_kernel_that_is_not_parallel_is_no_answer(decorated):
    @decorated
    def serial(dz, db):
        for f in numba.prange(len(db)):
            db[f] = dz[:, f].sum()

    assert "right on 1 thread, and not parallel" in rejected(serial)


def test_serial_loops_below_a_parallel_decorator_are_no_answer():
    @numba.njit(parallel=True)
    def serial(dz, db):
        for f in range(len(db)):
            db[f] = 0
            for n in range(len(dz)):
                db[f] += dz[n, f].sum()

    assert "no two iterations of a prange write: the loops are serial" in rejected(serial)


@numba.njit(parallel=True)
def serial_beside_a_parallel_zero(dz, db):
    for f in numba.prange(len(db)):
        db[f] = 0
    for n in range(len(dz)):
        for f in range(len(db)):
            db[f] += dz[n, f].sum()


@numba.njit(parallel=True)
def serial_in_one_iteration(dz, db):
    for t in numba.prange(2 * len(db)):
        for f in range(len(db)):
            if t == 0:
                db[f] = dz[:, f].sum()
        if t:
            dz[0, t % len(db), 0, 0] += 0


@pytest.mark.parametrize("kernel", [serial_beside_a_parallel_zero, serial_in_one_iteration])
def test_a_parallel_loop_beside_the_one_that_computes_is_no_answer(kernel):
    assert "the loops that compute are serial" in rejected(kernel)


def never_ends(dz, db):
    while True:
        db[0] = db[0]


def test_loops_that_never_end_are_stopped_while_they_are_followed(monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0.2)
    verdict = threads.follow("conv_backward_bias", never_ends, {})
    assert not verdict and "not done after 0.2 seconds as plain Python" in verdict.text


def on_elements(dz, db):
    for f in numba.prange(len(db)):
        db[f] = dz[0, f, 0, 0]


def with_memory_that_numpy_fills(dz, db):
    np.copyto(db, dz[0, :, 0, 0])


class WrongInTheEleventhRun:
    """A kernel that is wrong in its eleventh run on a large one; its loops are those of another."""

    def __init__(self, loops):
        self.py_func, self.runs, self.parallel = loops, 0, bias_by_filter

    def __call__(self, dz, db):
        db[:] = dz.sum((0, 2, 3), np.float64)
        self.runs += dz[0, 0].size > 5000
        db[0] += self.runs == 11


@pytest.mark.parametrize(
    "loops, runs_often", [(on_elements, False), (with_memory_that_numpy_fills, True)]
)
def test_a_large_case_runs_often_where_loops_do_not_tell_all(loops, runs_often):
    said = str(threads.kernel("conv_backward_bias", WrongInTheEleventhRun(loops)))
    assert said.startswith("✗" if runs_often else "✓")
    assert ("here): conv_backward_bias: not yet right for one large image" in said) is runs_often


def test_threads_are_left_as_they_were():
    before = numba.get_num_threads()
    said = str(threads.kernel("conv_backward_bias", bias_by_filter))
    assert numba.get_num_threads() == before
    assert said.startswith("✓ conv_backward_bias agrees with the reference on 1 to")
