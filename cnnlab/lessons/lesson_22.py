"""The exercises of lesson 22."""

import numpy as np

from cnnlab.check.exercises import kinds
from cnnlab.check.verdict import differences


def taken_once(sum_over_shares) -> str:
    """What is wrong with a sum of gradients over shares, for many numbers of them, in words."""
    x, labels = np.random.default_rng().random((10, 3)), np.arange(10)
    expected = (x * (1 + labels[:, None])).sum(0)
    for size in (1, 2, 3, 4, 10, 13):
        asked = []

        def gradients(part, its_labels, asked=asked):
            if len(part) == 0 or len(part) != len(its_labels):
                raise ValueError(f"got {len(part)} images and {len(its_labels)} labels")
            asked.append(len(part))
            return (part * (1 + its_labels[:, None])).sum(0)

        got = np.asarray(sum_over_shares(gradients, x, labels, size), float)
        wrong = differences("sum", got, expected, np.full(3, 1e-9))
        if len(asked) != min(size, 10) or max(asked) - min(asked) > 1:
            wrong = wrong or f"asked for shares of {asked} images"
        if wrong:
            return f"on {size} ranks: {wrong}"
    return ""


@kinds.formula(
    lambda rng: {"batch": int(rng.integers(1, 1000))},
    "With as many ranks as images, what does each have?",
    "One image each; one rank more, and somebody has none.",
)
def ranks(batch):
    """As many ranks as images have one each."""
    return batch + 1


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 100))},
    "A mean over a share divides by the images of the share, not by those of the batch.",
    "Each of the means is as large as the mean over the whole batch. How many are added?",
)
def factor(n_ranks):
    """A sum of as many means as there are ranks: divide by the ranks, or sum first."""
    return n_ranks


@kinds.tested(
    taken_once,
    "block(rank, size, len(x)) gives the share of a rank. What if it is empty?",
    "Add up gradients(x[first:last], labels[first:last]) over all ranks whose share is not empty.",
)
def shares(gradients, x, labels, size):
    """A rank without images adds nothing; it must not ask for the gradients of none."""
    from cnnlab.ranks.schedules import block

    total = 0
    for rank in range(size):
        first, last = block(rank, size, len(x))
        if first < last:
            total = total + gradients(x[first:last], labels[first:last])
    return total
