"""Answers to the exercises of lesson 22, right and wrong."""

from cnnlab.lessons.lesson_22 import factor, ranks, shares
from cnnlab.ranks.schedules import block


def mean_of_means(gradients, x, labels, size):
    return shares.model()(gradients, x, labels, size) / size


def asks_for_nothing(gradients, x, labels, size):
    parts = [slice(*block(rank, size, len(x))) for rank in range(size)]
    return sum(gradients(x[part], labels[part]) for part in parts)


def forgets_the_rest(gradients, x, labels, size):
    each = max(1, len(x) // size)
    parts = [slice(r * each, (r + 1) * each) for r in range(min(size, len(x)))]
    return sum(gradients(x[part], labels[part]) for part in parts)


RIGHT = [
    (ranks, lambda batch: batch + 1),
    (factor, lambda n_ranks: n_ranks),
    (shares, shares.model()),
]
WRONG = [
    (ranks, lambda batch: batch, "too small"),
    (factor, lambda n_ranks: 1 / n_ranks, "too small"),
    (shares, mean_of_means, "0.5 times"),
    (shares, asks_for_nothing, "got 0 images"),
    (shares, forgets_the_rest, "on 3 ranks"),
]
