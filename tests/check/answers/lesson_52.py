"""Answers to the exercises of lesson 52, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_52 import FAULTS, challenge_schedule, cross_entropy, faults
from cnnlab.ranks import mpi


def over_ranks(comm, values, op="SUM"):
    result = np.empty_like(values)
    comm.Allreduce(values, result, getattr(mpi, op))
    return result


def entropy(comm, z, labels, largest=None, total=None, offset=None):
    """The model answer, one part of which may be another."""
    offset = comm.rank * z.shape[1] if offset is None else offset
    label = np.arange(z.shape[1]) == (labels - offset)[:, None]
    z = z - (over_ranks(comm, z.max(1), "MAX") if largest is None else largest)[:, None]
    powers = np.exp(z).sum(1)
    total = over_ranks(comm, powers) if total is None else powers
    own = over_ranks(comm, (label * z).sum(1))
    return float((np.log(total) - own).sum()), np.exp(z) / total[:, None] - label


def stacked(comm, z, labels):
    """Three numbers a row in two messages."""
    largest = over_ranks(comm, z.max(1), "MAX")[:, None]
    rows, local = np.arange(len(z)), labels - comm.rank * z.shape[1]
    here = (0 <= local) & (local < z.shape[1])
    both = np.zeros((2, len(z)))
    both[0] = np.exp(z - largest).sum(1)
    both[1, here] = (z - largest)[rows[here], local[here]]
    total, own = over_ranks(comm, both)
    dz = np.exp(z - largest) / total[:, None]
    dz[rows[here], local[here]] -= 1
    return np.log(total).sum() - own.sum(), dz


def everything_travels(comm, z, labels):
    whole = np.empty((comm.size, *z.shape))
    comm.Allgather(z, whole)
    whole = np.hstack(list(whole))
    powers = np.exp(whole - whole.max(1, keepdims=True))
    share = powers / powers.sum(1, keepdims=True)
    loss = -np.log(share[np.arange(len(z)), labels]).sum()
    share[np.arange(len(z)), labels] -= 1
    return loss, np.hsplit(share, comm.size)[comm.rank]


def of_own_outputs_alone(comm, z, labels):
    return entropy(comm, z, labels, total="own")


def each_its_own_largest(comm, z, labels):
    """As if a shift cancelled that differs by rank."""
    return entropy(comm, z, labels, largest=z.max(1))


def labels_of_the_first_rank(comm, z, labels):
    return entropy(comm, z, labels, offset=0)


def without_largest(comm, z, labels):
    with np.errstate(over="ignore", invalid="ignore"):
        return entropy(comm, z, labels, largest=np.zeros(len(z)))


def onehot_forgotten(comm, z, labels):
    loss, dz = entropy(comm, z, labels)
    return loss, np.maximum(dz, 0)


def one_f_one_b(rank, size, m):
    first = min(size - rank, m)
    result = [("F", i) for i in range(first)]
    for i in range(m):
        result += [("B", i)] + [("F", first + i)] * (first + i < m)
    return result


def weights_at_once(rank, size, m):
    pairs = (
        [(kind, i), ("W", i)] if kind == "B" else [(kind, i)]
        for kind, i in one_f_one_b(rank, size, m)
    )
    return [task for pair in pairs for task in pair]


def weights_at_the_end(rank, size, m):
    """No gaps, and all activations are kept."""
    return one_f_one_b(rank, size, m) + [("W", i) for i in range(m)]


def weights_first(rank, size, m):
    return [("W", i) for i in range(m)] + one_f_one_b(rank, size, m)


def as_late_on_all(rank, size, m):
    """Every rank puts W off by as many as the last does."""
    result = []
    for kind, i in one_f_one_b(rank, size, m):
        result += [(kind, i)] + [("W", i - size + 1)] * (kind == "B" and i >= size - 1)
    return result + [("W", i) for i in range(max(0, m - size + 1), m)]


RIGHT = [
    (cross_entropy, stacked),
    (faults, ["no Summed", "unequal stages", "no Copied", "the bubble", "a bias on every rank"]),
]
WRONG = [
    (faults, list(FAULTS), "1 is not no Copied: what is a rank's own term of a sum?"),
    (
        faults,
        ["no Summed", "the bubble", ..., ..., ...],
        "2 is not the bubble: whom do all others wait",
    ),
    (
        faults,
        ["no Summed", "unequal stages", "no Summed", ..., ...],
        "3 is not no Summed: what can be",
    ),
    (cross_entropy, everything_travels, "outputs: a rank sends"),
    (cross_entropy, of_own_outputs_alone, "2 ranks: the loss is"),
    (cross_entropy, each_its_own_largest, "2 ranks: the loss is"),
    (cross_entropy, labels_of_the_first_rank, "2 ranks: the loss is"),
    (cross_entropy, without_largest, "1 ranks: the loss is"),
    (cross_entropy, onehot_forgotten, "the loss is right, the gradient is not"),
    (challenge_schedule, one_f_one_b, "expected W for each B, got none"),
    (challenge_schedule, weights_at_once, "2 ranks, 4 micro-batches: takes 14 units, expected 13"),
    (challenge_schedule, weights_at_the_end, "a rank holds 3 micro-batches, expected 1"),
    (challenge_schedule, weights_first, "expected an order that comes to an end"),
    (challenge_schedule, as_late_on_all, "2 ranks, 4 micro-batches: takes 14 units"),
    (challenge_schedule, ..., "not yet answered"),
]
