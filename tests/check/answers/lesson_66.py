"""Answers to the exercises of lesson 66, right and wrong."""

from cnnlab.lessons.lesson_66 import challenge_guided, diagnosis, tiles
from tests.check.changed import changed


def by_list(devices, n, first_free):
    """The sizes first, then the blocks."""
    sizes, left = [], n
    while left:
        sizes.append(min(left, max(8, left // (2 * len(devices)))))
        left -= sizes[-1]
    for k in range(len(sizes)):
        first_free(devices).start(sum(sizes[:k]), sum(sizes[: k + 1]))


def equal_share(devices, n, first_free):
    """All of an equal share of what is left, not half of it."""
    first = 0
    while first < n:
        last = min(n, first + max(8, (n - first) // len(devices)))
        first_free(devices).start(first, last)
        first = last


def fixed(devices, n, first_free):
    for first in range(0, n, 64):
        first_free(devices).start(first, min(n, first + 64))


def beyond(devices, n, first_free):
    """The last block has eight rows, whether they are there or not."""
    first = 0
    while first < n:
        last = first + max(8, (n - first) // (2 * len(devices)))
        first_free(devices).start(first, last)
        first = last


def forgets_the_rest(devices, n, first_free):
    """Stops where less than a smallest block is left."""
    first = 0
    while n - first >= 8:
        last = first + max(8, (n - first) // (2 * len(devices)))
        first_free(devices).start(first, last)
        first = last


def round_robin(devices, n, first_free):
    """In turn, whoever is free."""
    first, turn = 0, 0
    while first < n:
        last = min(n, first + max(8, (n - first) // (2 * len(devices))))
        devices[turn % len(devices)].start(first, last)
        first, turn = last, turn + 1


BARRIER = "__syncthreads();\n        "
TRANSPOSED = ("weights[row][col]", "weights[col][row]"), ("weights[col][i]", "weights[i][col]")
WORDS = ["NDRange", "buffer", "address space", "reserved word", "barrier"]
RIGHT = [(diagnosis, WORDS), (tiles, changed(tiles, *TRANSPOSED)), (challenge_guided, by_list)]
WRONG = [
    (diagnosis, ["buffer", *WORDS[1:]], "1 is not buffer"),
    (diagnosis, [WORDS[0], "address space", *WORDS[2:]], "2 is not address space"),
    (diagnosis, [*WORDS[:2], "buffer", *WORDS[3:]], "3 is not buffer"),
    (diagnosis, [*WORDS[:3], "address space", WORDS[4]], "4 is not address space"),
    (diagnosis, [*WORDS[:4], "NDRange"], "5 is not NDRange"),
    (tiles, changed(tiles, (f"{BARRIER}for", "for")), "uninitialised read"),
    (tiles, changed(tiles, ("[col][i];\n        __syncthreads();", "[col][i];")), "race"),
    (tiles, changed(tiles, ("n < N && d < D ? x[n * D + d] : 0", "x[n * D + d]")), "out of bounds"),
    (tiles, changed(tiles, ("int d = first + col", "int d = col")), "expected"),
    (tiles, changed(tiles, ("i < 16", "i < 15")), "expected"),
    (tiles, "__kernel", "expected the kernels"),
    (challenge_guided, equal_share, "rows left"),
    (challenge_guided, fixed, "rows left"),
    (challenge_guided, beyond, "rows left"),
    (challenge_guided, forgets_the_rest, "were not started"),
    (challenge_guided, round_robin, "a busy device"),
]
