"""Four allreduce algorithms as schedules: who sends which elements to whom, round by round.

A schedule generates one rank's `Step` of each round. Rank and size are parameters: it is listed,
drawn and simulated without MPI. All ranks end with the same bits, for any number of ranks.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

NOBODY = -1


class Step(NamedTuple):
    """One rank's part in a round: send elements [a, b) and receive [c, d) at the same time.

    `to` and `source` are ranks, or NOBODY. What is received is added if `add`, else it replaces.
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
    """Reduce to rank 0 along a binomial tree, then broadcast back: 2 log2(P) rounds."""
    steps, distance = [], 1
    while distance < size:
        if rank % (2 * distance) == distance:
            steps.append(Step(to=rank - distance, b=n))
        elif rank % (2 * distance) == 0 and rank + distance < size:
            steps.append(Step(source=rank + distance, d=n, add=True))
        else:
            steps.append(IDLE)
        distance *= 2
    yield from steps
    yield from way_back(steps)


def butterfly(rank: int, size: int, n: int) -> Iterator[Step]:
    """Recursive doubling: in round k exchange everything with the rank 2^k away, log2(P) rounds."""
    inner, n_inner = folded(rank, size)
    yield from fold(rank, size, n)
    distance = 1
    while distance < n_inner:
        if inner == NOBODY:
            yield IDLE
        else:
            peer = unfolded(inner ^ distance, size)
            yield Step(peer, 0, n, peer, 0, n, add=True)
        distance *= 2
    yield from way_back(fold(rank, size, n))


def ring(rank: int, size: int, n: int) -> Iterator[Step]:
    """Reduce-scatter, then allgather, passing blocks around a ring: 2 (P − 1) rounds.

    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(2 * (size - 1)):
        sent, received = (rank - k) % size, (rank - k - 1) % size
        yield Step(right, *block(sent, size, n), left, *block(received, size, n), add=k < size - 1)


def rabenseifner(rank: int, size: int, n: int) -> Iterator[Step]:
    """Recursive halving, then doubling: exchange half, a quarter, … and back, 2 log2(P) rounds.

    Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
    """
    inner, n_inner = folded(rank, size)
    yield from fold(rank, size, n)
    first, last, distance, steps = 0, n_inner, n_inner // 2, []
    while distance >= 1:  # this rank sums blocks [first, last); it keeps the half that it is in
        if inner == NOBODY:
            steps.append(IDLE)
        else:
            middle = (first + last) // 2
            peer = unfolded(inner ^ distance, size)
            a, b, c = (n * number // n_inner for number in (first, middle, last))
            low, high = (a, b), (b, c)
            kept, given = (high, low) if inner & distance else (low, high)
            steps.append(Step(peer, *given, peer, *kept, add=True))
            first, last = (middle, last) if inner & distance else (first, middle)
        distance //= 2
    yield from steps
    yield from way_back(steps)
    yield from way_back(fold(rank, size, n))


SCHEDULES: dict[str, Callable[[int, int, int], Iterator[Step]]] = {
    "tree": tree,
    "butterfly": butterfly,
    "ring": ring,
    "rabenseifner": rabenseifner,
}


def block(i: int, size: int, n: int) -> tuple[int, int]:
    """The elements [first, last) of block i, when n elements are cut into `size` blocks."""
    return n * i // size, n * (i + 1) // size


def way_back(steps: Iterable[Step]) -> Iterator[Step]:
    """The last step first: sums go to where their terms came from, and replace them."""
    for step in reversed([*steps]):
        yield Step(step.source, step.c, step.d, step.to, step.a, step.b)


# If the number of ranks is not a power of two, the first 2 r ranks fold into r before the exchange,
# and the result goes the way back. A rank's number among those that take part is its inner rank.


def folded(rank: int, size: int) -> tuple[int, int]:
    """The inner rank of a rank (NOBODY if it folds), and their number: the largest power of two."""
    n_inner = 1 << (size.bit_length() - 1)
    extra = size - n_inner
    if rank >= 2 * extra:
        return rank - extra, n_inner
    return (rank // 2 if rank % 2 else NOBODY), n_inner


def unfolded(inner: int, size: int) -> int:
    """The rank of an inner rank."""
    extra = size - (1 << (size.bit_length() - 1))
    return 2 * inner + 1 if inner < extra else inner + extra


def fold(rank: int, size: int, n: int) -> Iterator[Step]:
    """Each even rank of the first 2 r sends its elements to the next, which adds them."""
    extra = size - (1 << (size.bit_length() - 1))
    if not extra:
        return
    if rank >= 2 * extra:
        yield IDLE
    elif rank % 2:
        yield Step(source=rank - 1, d=n, add=True)
    else:
        yield Step(to=rank + 1, b=n)
