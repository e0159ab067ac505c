"""Answers to the exercises of lesson 55, right and wrong."""

import functools

import numpy as np

from cnnlab.lessons.lesson_55 import challenge_fedavg, largest, mixing, ring_mean


def sides(comm, x):
    return (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size, np.empty((2, *x.shape))


def at_once(comm, x):
    left, right, others = sides(comm, x)
    requests = [comm.Irecv(row, rank) for row, rank in zip(others, (left, right), strict=True)]
    requests += [comm.Isend(x, rank) for rank in (left, right)]
    for request in requests:
        request.Wait()
    x[:] = (x + others.sum(0)) / 3


def blocking(comm, x):
    left, right, others = sides(comm, x)
    comm.Send(x, right)
    comm.Recv(others[0], left)
    comm.Send(x, left)
    comm.Recv(others[1], right)
    x[:] = (x + others.sum(0)) / 3


def receives_first(comm, x):
    left, right, others = sides(comm, x)
    comm.Recv(others[0], left)
    comm.Send(x, right)
    comm.Recv(others[1], right)
    comm.Send(x, left)
    x[:] = (x + others.sum(0)) / 3


def one_side(comm, x):
    left, right, others = sides(comm, x)
    comm.Sendrecv(x, right, 0, others[0], left, 0)
    x[:] = (x + others[0]) / 2


def new_to_the_left(comm, x):
    left, right, others = sides(comm, x)
    comm.Sendrecv(x, right, 0, others[0], left, 0)
    x[:] = (x + others[0]) / 2
    comm.Sendrecv(x, left, 0, others[1], right, 0)
    x[:] = (2 * x + others[1]) / 3


def by_own_degree(n, edges):
    weights = np.eye(n)
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1
    return weights / weights.sum(1, keepdims=True)


def without_itself(n, edges):
    weights = mixed(n, edges)
    np.fill_diagonal(weights, 0)
    return weights


def mixed(n, edges):
    degree, weights = np.bincount(np.ravel(edges), minlength=n), np.zeros((n, n))
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return weights + np.diag(1 - weights.sum(1))


def too_heavy(n, edges, weight=0.5):
    weights = np.zeros((n, n))
    for i, j in edges:
        weights[i, j] = weights[j, i] = weight
    return weights + np.diag(1 - weights.sum(1))


def averaged(comm, x, downhill, n_steps, n_images, takes_part, *, by=None, keep=False):
    """A round of FedAvg, right; or weighted otherwise, or kept from those who sat out."""
    for _ in range(n_steps * takes_part):
        x -= downhill(x)
    weight = n_images * takes_part if by is None else by(n_images, takes_part)
    models, weights = np.array(comm.allgather(x)), np.array(comm.allgather(weight))
    if takes_part or not keep:
        x[:] = weights @ models / weights.sum()


def all_train(comm, x, downhill, n_steps, n_images, takes_part):
    averaged(comm, x, downhill, n_steps, n_images, True)


RIGHT = [
    (largest, lambda rate, curvature: 2 * (2 - rate * curvature) / (4 - rate * curvature)),
    (ring_mean, at_once),
    (mixing, mixed),
    (challenge_fedavg, averaged),
]
WRONG = [
    (largest, lambda rate, curvature: (4 - 2 * rate) / (4 - rate), "largest("),
    (largest, lambda rate, curvature: 2 / curvature, "largest("),
    (ring_mean, blocking, "deadlock"),
    (ring_mean, receives_first, "deadlock"),
    (ring_mean, one_side, "off by up to"),
    (ring_mean, new_to_the_left, "off by up to"),
    (mixing, by_own_degree, "columns to"),
    (mixing, without_itself, "the rows add up to"),
    (mixing, lambda n, edges: np.full((n, n), 1 / n), "not neighbours"),
    (mixing, lambda n, edges: np.eye(n), "never agree"),
    (mixing, too_heavy, "negative"),
    (mixing, functools.partial(too_heavy, weight=0.01), "negative"),
    (mixing, lambda n, edges: too_heavy(n, edges, 1 / np.bincount(np.ravel(edges)).max()), "agree"),
    (mixing, lambda n, edges: np.ones(n), "should be (5, 5)"),
    (challenge_fedavg, functools.partial(averaged, by=lambda n, part: part), "do not count"),
    (challenge_fedavg, all_train, "who sat out counts"),
    (challenge_fedavg, functools.partial(averaged, by=lambda n, part: n), "off by up to"),
    (challenge_fedavg, functools.partial(averaged, keep=True), "different models"),
]
