"""Small loops, each of which shows one thing about a processor."""

import numba
import numpy as np


@numba.njit(nogil=True, fastmath=True)
def read_all(a, times):
    """The sum of a (M), `times` times over."""
    total = np.float32(0)
    for _ in range(times):
        for i in range(a.size):
            total += a[i]
    return total


@numba.njit(nogil=True)
def follow(places, steps):
    """Go `steps` times from a place to the one that is written there: places (M) of uint64."""
    at = np.uint64(0)
    for _ in range(steps):
        at = places[at]
    return at


@numba.njit(nogil=True)
def add_up_1(a):
    """The sum of a (M): each addition waits for the one before."""
    s = np.float32(0)
    for i in range(a.size):
        s += a[i]
    return s


@numba.njit(nogil=True)
def add_up_2(a, b):
    """The sum of the halves a and b (M): two sums that do not wait for each other."""
    s, t = np.float32(0), np.float32(0)
    for i in range(a.size):
        s += a[i]
        t += b[i]
    return s + t


@numba.njit(nogil=True)
def add_up_4(a, b, c, d):
    """The sum of the quarters a, b, c and d (M): four sums that do not wait for each other."""
    s, t, u, v = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for i in range(a.size):
        s += a[i]
        t += b[i]
        u += c[i]
        v += d[i]
    return (s + t) + (u + v)


@numba.njit(nogil=True, fastmath=True)
def touch(a, stride):
    """The sum of every number of a (M) that is a multiple of `stride` from the first."""
    total = np.float32(0)
    for i in range(0, a.size, stride):
        total += a[i]
    return total


@numba.njit(nogil=True)
def roots_below(a, limit):
    """The sum of the square roots of those numbers of a (M) that are below a limit."""
    total = np.float32(0)
    for i in range(a.size):
        if a[i] < limit:
            total += np.sqrt(a[i])
    return total


@numba.njit(nogil=True)
def write_pages(a):
    """Write to a (M) of uint8 once in every page of 4 KiB."""
    for i in range(0, a.size, 4096):
        a[i] = 1
