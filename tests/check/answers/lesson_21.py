"""Answers to the exercises of lesson 21, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_21 import repaired, row_parallel


def ends(comm, n):
    return [n * rank // comm.size for rank in range(comm.size + 1)]


def transposed(comm, y, w, b):
    bounds = ends(comm, len(w))
    mine = slice(bounds[comm.rank], bounds[comm.rank + 1])
    rows = np.empty((len(w), len(y)), np.float32)  # a block of outputs lies in one piece
    comm.Allgatherv(w[mine] @ y.T + b[mine, None], (rows, [4 * n for n in np.diff(bounds)]))
    return rows.T


def as_handed_out(comm, y, w, b):
    each = len(w) // comm.size
    mine = slice(each * comm.rank, each * (comm.rank + 1))
    part = y @ w[mine].T + b[mine]
    z = np.zeros((len(y), len(w)), np.float32)
    comm.Gatherv(part, (z, [part.size] * comm.size))
    return z


def only_the_root(comm, y, w, b):
    bounds = ends(comm, len(w))
    mine = slice(bounds[comm.rank], bounds[comm.rank + 1])
    rows = np.zeros((len(w), len(y)), np.float32)
    comm.Gatherv(w[mine] @ y.T + b[mine, None], (rows, [4 * n for n in np.diff(bounds)]))
    return rows.T


def scrambled(comm, y, w, b):
    bounds = ends(comm, len(w))
    mine = slice(bounds[comm.rank], bounds[comm.rank + 1])
    z = np.empty((len(y), len(w)), np.float32)
    counts = [4 * n for n in np.diff(bounds)]
    comm.Allgatherv(np.ascontiguousarray(y @ w[mine].T + b[mine]), (z, counts))
    return z


def adds_then_biases(comm, y, w, b):
    z = np.ascontiguousarray(y @ w.T)
    total = np.empty_like(z)
    comm.Allreduce(z, total)
    return total + b


def bias_on_every_rank(comm, y, w, b):
    total = np.empty((len(y), len(w)), np.float32)
    comm.Allreduce(y @ w.T + b, total)
    return total


def own_sums_only(comm, y, w, b):
    return y @ w.T + b


def sums_on_the_root(comm, y, w, b):
    total = np.zeros((len(y), len(w)), np.float32)
    comm.Reduce(np.ascontiguousarray(y @ w.T), total)
    return total + b


def gathers_all_features(comm, y, w, b):
    ys, ws = comm.allgather(y), comm.allgather(w)
    return np.hstack(ys) @ np.hstack(ws).T + b


RIGHT = [(repaired, transposed), (row_parallel, adds_then_biases)]
WRONG = [
    (repaired, as_handed_out, "rank 0 of 2"),
    (repaired, only_the_root, "rank 1 of 2"),
    (repaired, scrambled, "rank 0 of 2: output"),
    (repaired, lambda comm, y, w, b: y @ w[:1].T + b[:1], "expected (4, 7) outputs, got (4, 1)"),
    (repaired, ..., "not yet answered"),
    (row_parallel, bias_on_every_rank, "rank 0 of 2: output 0 of image 0"),
    (row_parallel, own_sums_only, "rank 0 of 2"),
    (row_parallel, sums_on_the_root, "rank 1 of 2"),
    (row_parallel, gathers_all_features, "more than two for each output and rank"),
]
