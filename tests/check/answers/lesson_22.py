"""Answers to the exercises of lesson 22, right and wrong."""

from pathlib import Path

import nbformat
import numpy as np

from cnnlab import check
from cnnlab.ranks.schedules import block

LESSON = next((Path(__file__).parents[3] / "notebooks").glob("22_*.ipynb"))


def ranks(answer):
    return check.value("ranks", answer, 17)


def factor(answer):
    return check.value("factor", answer, 4)


def shares(answer):
    """The lesson's own check."""
    for cell in nbformat.read(LESSON, as_version=4).cells:
        if "answers:sum" in cell.metadata.get("tags", []):
            there = {"check": check, "np": np}
            exec(cell.source.rpartition("\n\n\n")[0], there)
    return there["check_sum"](answer)


def in_blocks(gradients, x, labels, size):
    total = 0
    for rank in range(size):
        first, last = block(rank, size, len(x))
        if first < last:
            total = total + gradients(x[first:last], labels[first:last])
    return total


def like_cards(gradients, x, labels, size):
    return sum(gradients(x[r::size], labels[r::size]) for r in range(min(size, len(x))))


def mean_of_means(gradients, x, labels, size):
    return in_blocks(gradients, x, labels, size) / size


def asks_for_nothing(gradients, x, labels, size):
    parts = [slice(*block(rank, size, len(x))) for rank in range(size)]
    return sum(gradients(x[part], labels[part]) for part in parts)


def forgets_the_rest(gradients, x, labels, size):
    each = max(1, len(x) // size)
    parts = [slice(r * each, (r + 1) * each) for r in range(min(size, len(x)))]
    return sum(gradients(x[part], labels[part]) for part in parts)


RIGHT = [(ranks, 17), (factor, 4), (shares, in_blocks), (shares, like_cards)]
WRONG = [
    (ranks, 16, "too small"),
    (factor, 0.25, "too small"),
    (factor, ..., "not yet answered"),
    (shares, mean_of_means, "0.5 times"),
    (shares, asks_for_nothing, "got 0 images"),
    (shares, forgets_the_rest, "on 3 ranks"),
]
