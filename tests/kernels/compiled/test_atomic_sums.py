import numba
import numpy as np

from cnnlab.lessons.lesson_11 import add_float32
from cnnlab.runtime import thread_pool


@numba.njit
def add_once(place, number):
    return add_float32(place.ctypes.data, number)


@numba.njit(parallel=True)
def add_often(place, n):
    for _ in numba.prange(n):
        add_float32(place.ctypes.data, np.float32(1))


def test_it_adds_and_returns_the_previous_value():
    place = np.full(1, 2.5, np.float32)
    assert add_once(place, np.float32(0.25)) == 2.5
    assert place[0] == 2.75


def test_threads_lose_no_addition():
    with thread_pool.threads(min(2, thread_pool.size())):
        for _ in range(20):
            place = np.zeros(1, np.float32)
            add_often(place, 100_000)
            assert place[0] == 100_000
