"""Answers to the exercises of lesson 57, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_57 import correction, split


def largest(values, k, by=abs):
    return np.sort(np.argpartition(-by(values), k)[:k])


def correction_by(
    velocity_goes=True, residual_goes=True, gradients=False, everywhere=False,
    by=abs, by_velocity=False, add=True, copy=True,
):  # fmt: skip
    def step(velocity, residual, gradient, k, momentum):
        velocity[:] = momentum * velocity + gradient
        residual *= add
        residual += gradient if gradients else velocity
        indices = largest(velocity if by_velocity else residual, k, by)
        values = residual[indices]
        if residual_goes:
            residual[indices] = 0
        if velocity_goes:
            velocity[... if everywhere else indices] = 0
        return indices, values if copy else residual[indices]

    return step


def sends_the_velocity(velocity, residual, gradient, k, momentum):
    velocity[:] = momentum * velocity + gradient
    indices = largest(velocity, k)
    values = velocity[indices]
    velocity[indices] = 0
    return indices, values


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


RIGHT = [(split, split_by()), (correction, correction_by())]
WRONG = [
    (split, split_by(adds=False), "another sum"),
    (split, split_by(owns=lambda i, size, n: i % size), "another sum"),
    (split, split_by(owns=lambda i, size, n: np.minimum(i // (n // size + 1), size - 1)), "sum"),
    (split, split_by(to="nobody"), "another sum"),
    (split, split_by(to="root"), "another sum"),
    (split, split_by(to="all, whole"), "are enough"),
    (split, all_to_all_of_them, "are enough"),
    (split, lambda comm, indices, values, n: values, "another sum"),
    (correction, correction_by(velocity_goes=False), "expected"),
    (correction, correction_by(residual_goes=False), "expected"),
    (correction, correction_by(velocity_goes=False, residual_goes=False), "expected"),
    (correction, correction_by(gradients=True), "expected"),
    (correction, correction_by(everywhere=True), "expected"),
    (correction, correction_by(by=np.asarray), "expected"),
    (correction, correction_by(by_velocity=True), "expected"),
    (correction, correction_by(add=False), "expected"),
    (correction, correction_by(copy=False), "expected"),
    (correction, sends_the_velocity, "expected"),
]
