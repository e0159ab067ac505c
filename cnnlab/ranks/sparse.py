"""Sums over ranks of arrays that are mostly zeros, sent as streams of places and numbers.

SparCML (Renggli and others 2019). A stream takes 8 bytes a number, a whole array 4 a place; so once
more than half of the places are taken, the array itself is sent.
"""

import numba
import numpy as np

from cnnlab.ranks.collectives import exchange
from cnnlab.ranks.schedules import NOBODY, butterfly

DENSE = -1  # in place of the number of places: the whole array follows


@numba.njit
def merge(a_places, a, b_places, b, places, values):
    """The sum of two streams, by place; returns how many places it has."""
    i, j, n = 0, 0, 0
    while i < a.size or j < b.size:
        if j == b.size or (i < a.size and a_places[i] < b_places[j]):
            places[n], values[n] = a_places[i], a[i]
            i += 1
        elif i == a.size or b_places[j] < a_places[i]:
            places[n], values[n] = b_places[j], b[j]
            j += 1
        else:
            places[n], values[n] = a_places[i], a[i] + b[j]
            i, j = i + 1, j + 1
        n += 1
    return n


def message(stream: tuple, n: int) -> np.ndarray:
    """What is sent of a stream, uint8: the number of its places, then either form of it."""
    places, values = stream
    if 2 * places.size <= n:
        return np.concatenate([np.int32([places.size]), places, values.view(np.int32)]).view(
            np.uint8
        )
    whole = np.zeros(n + 1, np.float32)
    whole[1:][places] = values
    whole[:1].view(np.int32)[0] = DENSE
    return whole.view(np.uint8)


def stream_of(received: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The places, int32, and the values, float32, in a message and what lies after it."""
    words = received.view(np.int32)
    if words[0] == DENSE:
        return np.arange(n, dtype=np.int32), words[1 : n + 1].view(np.float32).copy()
    places, values = words[1 : 2 * words[0] + 1].reshape(2, -1).copy()
    return places, values.view(np.float32)


def allreduce(comm, places: np.ndarray, values: np.ndarray, total: np.ndarray) -> None:
    """Write the sum over all ranks of their streams to `total` (n) of each.

    places int32 (k), ascending; values float32 (k); total float32 (n). k may differ from rank to
    rank. Recursive doubling: in each round the streams of two ranks are merged, and fill up.
    """
    n, mine = total.size, (places, values)
    for to, _, _, source, _, _, add in butterfly(comm.rank, comm.size, n):
        sent, received = message(mine, n), np.empty(4 * n + 4, np.uint8)
        exchange(comm, sent, to, received, source)
        if source != NOBODY:
            mine = added(mine, stream_of(received, n)) if add else stream_of(received, n)
    total[:] = 0
    total[mine[0]] = mine[1]


def added(one: tuple, other: tuple) -> tuple[np.ndarray, np.ndarray]:
    """The sum of two streams."""
    most = one[0].size + other[0].size
    places, values = np.empty(most, np.int32), np.empty(most, np.float32)
    n = merge(*one, *other, places, values)
    return places[:n], values[:n]
