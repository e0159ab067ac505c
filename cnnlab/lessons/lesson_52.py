"""The exercises of lesson 52."""

from cnnlab.check.exercises import kinds
from cnnlab.ranks.pipeline_schedules import Task
from cnnlab.ranks.pipeline_times import held, timed, wrong


@kinds.formula(
    lambda rng: {
        "p": int(rng.integers(1, 12)),
        "m": int(rng.integers(1, 40)),
        "forward": float(rng.uniform(1, 3)),
        "backward": float(rng.uniform(1, 6)),
    },
    "Follow the last micro-batch: how many tasks does rank 0 do, and how long does it wait?",
    "Its m forward and m backward passes, and p − 1 of each on the other ranks meanwhile.",
)
def units(p, m, forward, backward):
    """m passes of its own, and p − 1 steps up and down for which it waits."""
    return (m + p - 1) * (forward + backward)


@kinds.formula(
    lambda rng: {"p": int(rng.integers(2, 20)), "most": int(rng.integers(1, 10)) / 20},
    "Set (p − 1) / (m + p − 1) equal to it, and solve for m.",
    "m is a whole number: which way must you round?",
)
def micro_batches(p, most):
    """(p − 1) / (m + p − 1) ≤ x means m ≥ (p − 1) (1 − x) / x."""
    from math import ceil

    return max(1, ceil((p - 1) * (1 - most) / most - 1e-9))


def rows_are_right(mine) -> str:
    """What is wrong with a function that says which rows of a layer's input a rank needs."""
    for a, b in ((0, 1), (0, 6), (3, 8), (5, 6), (4, 4)):
        for kernel, stride in ((1, 1), (3, 1), (5, 1), (2, 2), (4, 4), (5, 3), (2, 3)):
            rows = [row * stride + k for row in range(a, b) for k in range(kernel)]
            expected = (min(rows), max(rows) + 1) if rows else None
            got = tuple(mine(a, b, kernel, stride))
            at = f"rows({a}, {b}, kernel={kernel}, stride={stride})"
            if expected is None and got[0] != got[1]:
                return f"{at}: expected an empty range, as the rank has no row, got {got}"
            if expected is not None and got != expected:
                return f"{at}: expected {expected}, got {got}"
    return ""


@kinds.tested(
    rows_are_right,
    "Which rows does the window of the first output row cover, and which that of the last?",
    "Row p of the output covers the rows from p times the stride, as many as the kernel has; the "
    "last one is b − 1.",
)
def rows(a, b, kernel, stride):
    """To the last row of the last window: S rows for each row of output, and K − S more.

    A rank without a row needs none.
    """
    return (a * stride, (b - 1) * stride + kernel) if a < b else (0, 0)


def tasks_are_right(mine) -> str:
    """What is wrong with a function that makes a rank's list of tasks: 1F1B is wanted."""
    for size, n_micro in ((1, 1), (1, 5), (2, 4), (4, 8), (5, 3), (3, 7)):
        at = f"{size} ranks, {n_micro} micro-batches"
        of = [
            [Task(kind, rank, i) for kind, i in mine(rank, size, n_micro)] for rank in range(size)
        ]
        if fault := wrong(of, size, n_micro):
            return f"{at}: {fault}"
        if any(task.kind == "W" for tasks in of for task in tasks):
            return f"{at}: expected F and B alone, got W"
        end, least = max(span.end for span in timed(of)), 2 * (n_micro + size - 1)
        if end > least:
            return f"{at}: takes {end:g} units, expected {least}"
        for rank, tasks in enumerate(of):
            if max(held(tasks)) > size - rank:
                most = max(held(tasks))
                return f"{at}: rank {rank} holds {most} micro-batches, expected {size - rank}"
    return ""


@kinds.tested(
    tasks_are_right,
    "How many forward passes come first? Let rank r begin with P − r of them; there may be fewer.",
    "Then one backward, one forward, in turn, until there is nothing left to take forward.",
)
def tasks(rank, size, n_micro):
    """P − r forward, then one back for each one forward: so many are held, and never more."""
    first = min(size - rank, n_micro)
    found = [("F", i) for i in range(first)]
    for i in range(n_micro):
        found.append(("B", i))
        if first + i < n_micro:
            found.append(("F", first + i))
    return found


@kinds.formula(
    lambda rng: {"n": int(rng.integers(1, 50)) * 1000, "n_ranks": int(rng.integers(2, 64))},
    "An all-gather of n numbers brings each rank all but its own n / P. How many are there a step?",
    "Two all-gathers, forward and backward, and a reduce-scatter, which is one turned round.",
    rtol=1e-3,
)
def sharded_bytes(n, n_ranks):
    """Two all-gathers and a reduce-scatter, each of which brings (P − 1) / P of n float32."""
    return 3 * 4 * n * (n_ranks - 1) / n_ranks
