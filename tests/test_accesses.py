import numba
import numpy as np

from cnnlab.accesses import READ, WRITE, accesses, trips
from cnnlab.kernels import stationarity


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
