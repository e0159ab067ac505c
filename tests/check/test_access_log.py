import numba
import numpy as np
import pytest
from numba import prange

from cnnlab.check.access_log import READ, WRITE, accesses, race, trips
from cnnlab.kernels.variants import stationarity


@numba.njit
def shift(x, y):
    for i in range(1, x.size):
        y[i - 1] = x[i]
    y[x.size - 1 :] = 0


def test_every_access_is_remembered_in_its_order():
    x, y = np.arange(3.0), np.empty(3)
    log = accesses(shift, x=x, y=y)
    assert log == [
        ("x", READ, 1),
        ("y", WRITE, 0),
        ("x", READ, 2),
        ("y", WRITE, 1),
        ("y", WRITE, 2),
    ]
    assert y.tolist() == [1, 2, 0]


def test_views_know_their_place():
    def kernel(a):
        row = a[1]
        row[2] += 1

    a = np.zeros((2, 3))
    assert accesses(kernel, a=a) == [("a", READ, 5), ("a", WRITE, 5)]
    assert a[1, 2] == 1


def test_each_order_makes_the_trips_that_the_arithmetic_says():
    N, C, F, H, K = 2, 1, 3, 6, 3
    P = H - K + 1
    macs = N * F * P * P * C * K * K
    for order, expected in {
        "output": {("w", READ): macs, ("x", READ): macs, ("z", WRITE): N * F * P * P},
        "input": {("w", READ): macs, ("x", READ): N * C * H * H, ("z", READ): macs},
        "weight": {("w", READ): N * F * C * K * K, ("x", READ): macs, ("z", READ): macs},
    }.items():
        log = accesses(
            getattr(stationarity, f"conv_forward_{order}_stationary"),
            x=np.ones((N, C, H, H), np.float32),
            w=np.ones((F, C, K, K), np.float32),
            b=np.zeros(F, np.float32),
            z=np.empty((N, F, P, P), np.float32),
        )
        counts = trips(log)
        assert {key: counts[key] for key in expected} == expected, order


# --- races --------------------------------------------------------------------------------------


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
    for i in numba.prange(len(x)):
        y[numba.get_thread_id()] += x[i, 0]


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


def test_a_kernel_that_cannot_be_followed_is_said():
    arrays = {"x": np.ones((4, 3)), "y": np.zeros(4)}
    with pytest.raises(TypeError, match="asks for its thread"):
        race(by_thread, arrays)
    with pytest.raises(AttributeError):
        race(lambda x, y: x.reshape(-1), arrays)
