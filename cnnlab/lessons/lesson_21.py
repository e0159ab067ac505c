"""The exercises of lesson 21."""

from cnnlab.check.exercises import kinds


def covering(blocks) -> str:
    """What is wrong with blocks for many numbers of things and ranks, in words."""
    for size in range(1, 10):
        for n in range(30):
            found = [blocks(i, size, n) for i in range(size)]
            covered = [j for first, last in found for j in range(first, last)]
            lengths = [last - first for first, last in found]
            if covered != list(range(n)) or max(lengths) - min(lengths) > 1:
                return f"{n} things on {size} ranks: got {found}"
    return ""


@kinds.tested(
    covering,
    "divmod(n, size) gives the least that each rank gets, and how many are left over.",
    "The first `more` ranks get one more, so block i begins at i · each + min(i, more).",
)
def blocks(i, size, n):
    """The ranks before i have `each`, and the first `more` of them one more."""
    each, more = divmod(n, size)
    first = i * each + min(i, more)
    return first, first + each + (i < more)


@kinds.choice(
    ["finalize", "reduce", "division"],
    "Which of the three concerns the numbers, which the ranks, and which the end of the program?",
    "MPI_Reduce leaves the sum on one rank; n / size rounds down; what stands behind a return "
    "never runs.",
)
def bugs():
    """Allreduce; blocks that cover all; finalise before you return."""
    return ["reduce", "division", "finalize"]


@kinds.formula(
    lambda rng: {"before": int(rng.integers(1, 100)), "after": int(rng.integers(100, 1000))},
    "What is sent are outputs. Whose?",
    "There are outputs for every image, so the bytes grow as the batch does.",
)
def factor(before, after):
    """It sends outputs, and there are outputs for every image."""
    return after / before
