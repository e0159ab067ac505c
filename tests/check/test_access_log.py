import numba
import numpy as np
import pytest
from numba import prange
from numpy import zeros

from cnnlab.check.access_log import race


@numba.njit(parallel=True)
def sums(x, y):
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i // 2] += x[i, j]


@numba.njit(parallel=True)
def neighbours(x, y):
    for i in numba.prange(len(y)):
        y[i] = x[i, 0]
    for i in numba.prange(len(y) - 1):
        y[i] = y[i + 1]


@numba.njit(parallel=True)
def parted(x, y):
    y[:] = 0
    for i in numba.prange(len(y)):
        y[i] += x[i, 0]
    for i in numba.prange(len(y)):
        for j in numba.prange(2):  # one within another is not parallel
            y[i] += x[j, 0]
    y[0] += y[1]


@numba.njit(parallel=True)
def by_thread(x, y):
    sums = np.zeros((numba.get_num_threads(), 3))
    for i in numba.prange(len(x)):
        sums[numba.get_thread_id()] += x[i]
    y[:3] = sums.sum(0)


def test_iterations_that_meet_at_an_element_race():
    arrays = {"x": np.ones((4, 3)), "y": np.zeros(4)}
    expected = "iterations 0 and 1 of the prange both write y[0]: a race"
    assert race(sums, arrays) == expected
    assert race(neighbours, arrays) == "iterations 1 and 0 of the prange both use y[1]: a race"
    assert race(parted, arrays) is None
    assert numba.prange(3) == range(3)  # as it was


def test_prange_by_any_name_is_followed():
    def plain(x, y):
        for i in prange(len(x)):
            y[0] += x[i, 0]

    assert "both write y[0]" in race(plain, {"x": np.ones((4, 3)), "y": np.zeros(4)})


def by_few_threads(x, y):
    for i in numba.prange(len(x)):
        y[numba.get_thread_id() % 2] += x[i, 0]


def test_of_a_kernel_that_asks_for_its_thread_two_threads_race():
    arrays = {"x": np.ones((4, 3)), "y": np.zeros(4)}
    assert race(by_thread, arrays) is None and arrays["y"].tolist() == [4, 4, 4, 0]
    arrays["y"][:] = 0
    assert race(by_few_threads, arrays) == "threads 0 and 2 of the prange both write y[0]: a race"


def shared(make):
    """A kernel whose iterations share an array that `make` returns."""

    def kernel(x, y):
        row = make(x)
        for i in numba.prange(len(y)):
            row[0] = x[i, 0]
            y[i] = row[0]

    return kernel


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.empty(3),
        lambda x: np.zeros_like(x[0]),
        lambda x: np.empty((2, 3))[1],
        lambda x: np.empty((3, 2)).reshape(6),
        lambda x: np.concatenate((np.ones(2), np.ones(2))),
        lambda x: x[0].copy(),
        lambda x: x[0] + 1,
        lambda x: zeros(3),
    ],
)
def test_an_array_that_the_kernel_makes_before_the_loop_is_followed(make):
    arrays = {"x": np.ones((4, 3)), "y": np.zeros(4)}
    said = "iterations 0 and 1 of the prange both write element "
    assert said in race(shared(make), arrays)
    assert np.empty(3).shape == zeros(3).shape and type(np.empty(3)) is np.ndarray  # as they were


def private(x, y):
    sums, total = np.zeros((len(y), 3)), np.zeros(3)
    for i in numba.prange(len(y)):
        row = np.zeros(3)
        row[:] = x[i]
        sums[i] += row
    for i in range(len(y)):
        total += sums[i]
    for i in numba.prange(len(y)):
        y[i] = total.sum() + np.sum(total) + sums.T[0, i]


def test_arrays_of_one_iteration_and_reads_by_all_are_no_race():
    arrays = {"x": np.arange(12.0).reshape(4, 3), "y": np.zeros(4)}
    assert race(private, arrays) is None
    assert arrays["y"][1] == 2 * 66 + 3


def test_a_kernel_that_cannot_be_followed_is_said():
    arrays = {"x": np.ones((4, 3)), "y": np.zeros(4)}

    def adds_whole_arrays(x, y):
        for i in numba.prange(3):
            y += x[:, i]

    def needs_memory(x, y):
        np.copyto(y, x[:, 0])

    def knows_its_threads(x, y):
        for _ in numba.prange(4 * len(y)):
            y[numba.get_thread_id()] = 1

    for kernel in (adds_whole_arrays, needs_memory, knows_its_threads):
        with pytest.raises(TypeError):
            race(kernel, arrays)
    with pytest.raises(AttributeError):
        race(lambda x, y: x.nothing, arrays)
