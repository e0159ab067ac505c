"""Schedules of a pipeline as data: which rank does which task, in which order.

A batch is cut into micro-batches, the network into stages; stage s lies on rank s mod P. A rank has
a list of tasks, takes them in order, and waits for what one needs. So a schedule can be listed,
drawn, timed and run, and nothing here computes or sends.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cnnlab.runtime.arguments import at_least, one_of


class Task(NamedTuple):
    """The forward pass "F" or the backward pass "B" of a stage for a micro-batch.

    Where the backward pass is split, "B" finds the gradient of the stage's input alone, and "W"
    those of its weights. The other schedules find both in "B".
    """

    kind: str
    stage: int
    micro: int


def gpipe(rank: int, size: int, n_micro: int, chunks: int) -> Iterator[Task]:
    """All forward passes, then all backward passes (Huang et al., GPipe, 2019)."""
    yield from (Task("F", rank, i) for i in range(n_micro))
    yield from (Task("B", rank, i) for i in range(n_micro))


def one_forward_one_backward(rank: int, size: int, n_micro: int, chunks: int) -> Iterator[Task]:
    """Backward as soon as possible: rank r holds at most P − r micro-batches (PipeDream-flush)."""
    held = min(size - rank, n_micro)
    forward = [Task("F", rank, i) for i in range(n_micro)]
    backward = [Task("B", rank, i) for i in range(n_micro)]
    yield from alternately(forward, backward, held)


def interleaved(rank: int, size: int, n_micro: int, chunks: int) -> Iterator[Task]:
    """One forward, one backward, with several thin stages a rank (Narayanan et al., 2021).

    Micro-batches pass in groups of P: the first stage of a rank takes a group, then its second.
    """
    whole = range(-(-n_micro // size) * size)  # a last group of fewer is one with gaps
    up = [(chunk, i) for g in whole[::size] for chunk in range(chunks) for i in whole[g : g + size]]
    forward = [Task("F", chunk * size + rank, i) for chunk, i in up]
    backward = [Task("B", (chunks - 1 - chunk) * size + rank, i) for chunk, i in up]
    held = 2 * (size - rank - 1) + (chunks - 1) * size + 1
    yield from (t for t in alternately(forward, backward, held) if t.micro < n_micro)


def zero_bubble(rank: int, size: int, n_micro: int, chunks: int) -> Iterator[Task]:
    """Weight gradients fill the bubble: nobody waits for them (Qi et al., ZB-H1, 2023).

    Rank r puts those of a micro-batch off until it has gone back with r others.
    """
    for task in one_forward_one_backward(rank, size, n_micro, chunks):
        yield task
        if task.kind == "B" and task.micro >= rank:
            yield Task("W", rank, task.micro - rank)
    yield from (Task("W", rank, i) for i in range(max(0, n_micro - rank), n_micro))


def alternately(forward: Sequence[Task], backward: Sequence[Task], held: int) -> Iterator[Task]:
    """`held` tasks forward, then one backward and one forward in turn, then the rest backward."""
    yield from forward[:held]
    for k, task in enumerate(backward):
        yield task
        yield from forward[held + k : held + k + 1]


class Schedule(NamedTuple):
    """A schedule: a line about it, the tasks of a rank, and how many stages a rank has."""

    summary: str
    tasks: Callable[[int, int, int, int], Iterator[Task]]
    chunks: int = 1


SCHEDULES = {
    "gpipe": Schedule("all forward, then all backward", gpipe),
    "1f1b": Schedule("backward as soon as possible", one_forward_one_backward),
    "interleaved": Schedule("1f1b, two thin stages a rank", interleaved, chunks=2),
    "zero-bubble": Schedule("1f1b, weight gradients fill gaps", zero_bubble),
}


def plan(schedule: str, size: int, n_micro: int) -> list[list[Task]]:
    """The tasks of each of `size` ranks, in order, for `n_micro` micro-batches.

    Raises ValueError for an unknown schedule, or numbers below 1.
    """
    one_of("schedule", schedule, SCHEDULES)
    at_least("size", size, 1)
    at_least("n_micro", n_micro, 1)
    _, tasks, chunks = SCHEDULES[schedule]
    return [list(tasks(rank, size, n_micro, chunks)) for rank in range(size)]
