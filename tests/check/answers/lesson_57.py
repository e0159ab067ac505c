"""Answers to the exercises of lesson 57, right and wrong."""

import itertools

import numpy as np

from cnnlab.lessons.lesson_57 import choose, merge_largest, split


def largest(values, k, by=abs):
    return np.sort(np.argsort(-by(values), kind="stable")[:k])


def choose_by(
    velocity_goes=True, residual_goes=True, gradients=False, everywhere=False, by=abs,
    by_velocity=False, add=True, copy=True, layers=True, from_start=False,
):  # fmt: skip
    def step(velocity, residual, gradient, starts, k, momentum):
        velocity[:] = momentum * velocity + gradient
        residual *= add
        residual += gradient if gradients else velocity
        bounds, asked = (
            starts if layers else (0, residual.size),
            velocity if by_velocity else residual,
        )
        chosen = []
        for first, last in itertools.pairwise(bounds):
            chosen += [*((not from_start) * first + largest(asked[first:last], k, by))]
        values = residual[chosen]
        if residual_goes:
            residual[chosen] = 0
        if velocity_goes:
            velocity[... if everywhere else chosen] = 0
        return chosen, values if copy else residual[chosen]

    return step


def sends_the_velocity(velocity, residual, gradient, starts, k, momentum):
    velocity[:] = momentum * velocity + gradient
    return choose_by()(np.zeros(12), velocity, np.zeros(12), starts, k, 0)


def merge_by(add=True, by=abs, order=True, cut=True, one=False):
    def merge(i, a, j, b, k):
        sums = dict(zip(i, a, strict=True))
        for index, value in zip(j, b, strict=True):
            sums[index] = sums.get(index, 0) * add + value
        kept = sorted(sums, key=lambda index: -by(sums[index]))[: k if cut else None]
        kept = sorted(kept) if order else kept
        return np.array(i if one else kept), np.array(a if one else [sums[x] for x in kept])

    return merge


def twice(i, a, j, b, k):
    both, values = np.concatenate([i, j]), np.concatenate([a, b])
    kept = largest(values, k)
    return both[kept][np.argsort(both[kept])], values[kept][np.argsort(both[kept])]


def split_by(owns=None, adds=True, to="all"):
    """A sum by blocks, or a wrong one: other owners, no additions, too few or too much gathered."""

    def answer(comm, indices, values, n):
        bounds = [n * r // comm.size for r in range(comm.size + 1)]
        owner = np.searchsorted(bounds, indices, side="right") - 1
        if owns:
            owner = owns(indices, comm.size, n)
        block, (first, last) = np.zeros(n), bounds[comm.rank : comm.rank + 2]
        for i, v in comm.alltoall(
            [(indices[owner == r], values[owner == r]) for r in range(comm.size)]
        ):
            block[i] = block[i] + v if adds else v
        if to == "nobody":
            return block
        if to == "root":
            blocks = comm.gather(block[first:last], root=0)
            return np.concatenate(blocks) if comm.rank == 0 else block
        if to == "all, whole":
            return sum(comm.allgather(block))
        return np.concatenate(comm.allgather(block[first:last].astype(np.float32)))

    return answer


def all_to_all_of_them(comm, indices, values, n):
    total = np.zeros(n)
    for i, v in comm.allgather((indices, values)):
        total[i] += v
    return total


RIGHT = [
    (split, split_by()),
    (choose, choose_by()),
    (choose, lambda *given: np.array(choose_by()(*given))),
    (merge_largest, merge_by()),
]
WRONG = [
    (split, split_by(adds=False), "another sum"),
    (split, split_by(owns=lambda i, size, n: i % size), "another sum"),
    (split, split_by(owns=lambda i, size, n: np.minimum(i // (n // size + 1), size - 1)), "sum"),
    (split, split_by(to="nobody"), "another sum"),
    (split, split_by(to="root"), "another sum"),
    (split, split_by(to="all, whole"), "are enough"),
    (split, all_to_all_of_them, "are enough"),
    (split, lambda comm, indices, values, n: values, "another sum"),
    (choose, choose_by(velocity_goes=False), "expected"),
    (choose, choose_by(residual_goes=False), "expected"),
    (choose, choose_by(velocity_goes=False, residual_goes=False), "expected"),
    (choose, choose_by(gradients=True), "expected"),
    (choose, choose_by(everywhere=True), "expected"),
    (choose, choose_by(by=np.asarray), "expected"),
    (choose, choose_by(by_velocity=True), "expected"),
    (choose, choose_by(add=False), "expected"),
    (choose, choose_by(copy=False), "expected"),
    (choose, choose_by(layers=False), "expected"),
    (choose, choose_by(from_start=True), "expected"),
    (choose, sends_the_velocity, "expected"),
    (merge_largest, merge_by(add=False), "expected"),
    (merge_largest, merge_by(by=np.asarray), "expected"),
    (merge_largest, merge_by(order=False), "expected"),
    (merge_largest, merge_by(cut=False), "expected"),
    (merge_largest, merge_by(one=True), "expected"),
    (merge_largest, twice, "expected"),
]
