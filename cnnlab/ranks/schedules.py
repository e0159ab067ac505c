"""Four ways to allreduce, as schedules: who sends which elements to whom, round by round.

A schedule is a generator of one `Step` a round for one rank; rank and size are numbers, so that it
can be listed, drawn and simulated without MPI. Any size and any number of elements will do. All
ranks end with the same bits.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

NOBODY = -1


class Step(NamedTuple):
    """What a rank does in one round: send elements [a, b) and receive [c, d), at the same time.

    `to` and `source` are ranks, or NOBODY. What comes is added to what is there, or replaces it.
    """

    to: int = NOBODY
    a: int = 0
    b: int = 0
    source: int = NOBODY
    c: int = 0
    d: int = 0
    add: bool = False


IDLE = Step()


def tree(rank: int, size: int, n: int) -> Iterator[Step]:
    """Reduce to rank 0 along a binomial tree, and broadcast back along it: 2 log2(P) rounds."""
    distance = 1
    while distance < size:
        if rank % (2 * distance) == distance:
            yield Step(to=rank - distance, b=n)
        elif rank % (2 * distance) == 0 and rank + distance < size:
            yield Step(source=rank + distance, d=n, add=True)
        else:
            yield IDLE
        distance *= 2
    while distance > 1:
        distance //= 2
        if rank % (2 * distance) == distance:
            yield Step(source=rank - distance, d=n)
        elif rank % (2 * distance) == 0 and rank + distance < size:
            yield Step(to=rank + distance, b=n)
        else:
            yield IDLE


def butterfly(rank: int, size: int, n: int) -> Iterator[Step]:
    """Recursive doubling: in round k exchange everything with the rank 2^k away. log2(P) rounds."""
    within, ranks = folded(rank, size)
    yield from fold(rank, size, n)
    distance = 1
    while distance < ranks:
        if within == NOBODY:
            yield IDLE
        else:
            peer = unfolded(within ^ distance, size)
            yield Step(peer, 0, n, peer, 0, n, add=True)
        distance *= 2
    yield from unfold(rank, size, n)


def ring(rank: int, size: int, n: int) -> Iterator[Step]:
    """Reduce-scatter, then allgather, each block passed on round a ring: 2 (P - 1) rounds.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(2 * (size - 1)):
        sent, received = (rank - k) % size, (rank - k - 1) % size
        yield Step(right, *block(sent, size, n), left, *block(received, size, n), add=k < size - 1)


def rabenseifner(rank: int, size: int, n: int) -> Iterator[Step]:
    """Recursive halving, then doubling: exchange half, a quarter, … and back. 2 log2(P) rounds.

    Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
    """
    within, ranks = folded(rank, size)
    yield from fold(rank, size, n)
    first, last, distance, halves = 0, ranks, ranks // 2, []
    while distance >= 1:  # blocks first … last are this rank's; it keeps the half that holds it
        if within == NOBODY:
            yield IDLE
        else:
            middle = (first + last) // 2
            peer = unfolded(within ^ distance, size)
            low, high = span(first, middle, ranks, n), span(middle, last, ranks, n)
            kept, given = (high, low) if within & distance else (low, high)
            yield Step(peer, *given, peer, *kept, add=True)
            halves.append((peer, kept, given))
            first, last = (middle, last) if within & distance else (first, middle)
        distance //= 2
    for _ in range(ranks.bit_length() - 1):
        if within == NOBODY:
            yield IDLE
        else:
            peer, kept, given = halves.pop()
            yield Step(peer, *kept, peer, *given)
    yield from unfold(rank, size, n)


SCHEDULES: dict[str, Callable[[int, int, int], Iterator[Step]]] = {
    "tree": tree,
    "butterfly": butterfly,
    "ring": ring,
    "rabenseifner": rabenseifner,
}


def block(i: int, size: int, n: int) -> tuple[int, int]:
    """First and one past the last element of block i, where n elements are cut into `size`."""
    return n * i // size, n * (i + 1) // size


def span(first: int, last: int, size: int, n: int) -> tuple[int, int]:
    """The elements of the blocks first … last - 1."""
    return n * first // size, n * last // size


# Where the number of ranks is no power of two: the first 2 r ranks fold into r, and later unfold.


def folded(rank: int, size: int) -> tuple[int, int]:
    """A rank's number among the largest power of two ranks (NOBODY if left out), and that power."""
    ranks = 1 << (size.bit_length() - 1)
    extra = size - ranks
    if rank >= 2 * extra:
        return rank - extra, ranks
    return (rank // 2 if rank % 2 else NOBODY), ranks


def unfolded(within: int, size: int) -> int:
    """The rank that has the number `within` among the power of two."""
    extra = size - (1 << (size.bit_length() - 1))
    return 2 * within + 1 if within < extra else within + extra


def fold(rank: int, size: int, n: int) -> Iterator[Step]:
    """Each left-out rank gives its elements to the next one."""
    extra = size - (1 << (size.bit_length() - 1))
    if not extra:
        return
    if rank >= 2 * extra:
        yield IDLE
    elif rank % 2:
        yield Step(source=rank - 1, d=n, add=True)
    else:
        yield Step(to=rank + 1, b=n)


def unfold(rank: int, size: int, n: int) -> Iterator[Step]:
    """Each left-out rank gets the result from the next one."""
    extra = size - (1 << (size.bit_length() - 1))
    if not extra:
        return
    if rank >= 2 * extra:
        yield IDLE
    elif rank % 2:
        yield Step(to=rank - 1, b=n)
    else:
        yield Step(source=rank + 1, d=n)
