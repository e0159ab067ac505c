"""Schedules of a pipeline as data: which rank does which task, in which order.

A batch is cut into micro-batches, the network into stages; stage s lies on rank s mod P. A rank has
a list of tasks, takes them in order, and waits for what one needs. So a schedule can be listed,
drawn, timed and run, and nothing here computes or sends.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cnnlab.runtime.arguments import at_least, one_of


class Task(NamedTuple):
    """The forward pass "F" or the backward pass "B" of a stage for a micro-batch.

    If backward is split, "B" finds the gradient of the input, "W" those of weights; else "B" both.
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


# --- what a schedule of a pipeline takes ----------------------------------------------------------


class Span(NamedTuple):
    """A task of a rank, from `begin` to `end`, in units of time."""

    rank: int
    task: Task
    begin: float
    end: float


UNITS = {"F": 1.0, "B": 1.0, "W": 1.0}  # for a stage where a rank has one


def needs(task: Task, n_stages: int) -> list[Task]:
    """The tasks that must be done before this one."""
    kind, stage, i = task
    if kind == "F":
        return [Task("F", stage - 1, i)] if stage else []
    if kind == "W":
        return [Task("B", stage, i)]
    above = [Task("B", stage + 1, i)] if stage + 1 < n_stages else []
    return [Task("F", stage, i), *above]


def timed(
    group: Sequence[Sequence[Task]], units: Mapping[str, float] | Callable[[Task], float] = UNITS
) -> list[Span]:
    """When the ranks do each task of a plan, in the order of their ends.

    `units` is the time of each kind of task on a rank that has one stage, where of several thin
    ones each takes its part; or a function of the task. Raises ValueError where ranks would wait
    for each other for ever.
    """
    n_stages = 1 + max(task.stage for tasks in group for task in tasks)
    took = units if callable(units) else lambda task: units[task.kind] * len(group) / n_stages
    left, free = [list(tasks) for tasks in group], [0.0] * len(group)
    done: dict[Task, float] = {}
    spans = []
    while any(left):
        heads = [
            (rank, tasks[0], needs(tasks[0], n_stages)) for rank, tasks in enumerate(left) if tasks
        ]
        ready = [
            (rank, task, before) for rank, task, before in heads if all(t in done for t in before)
        ]
        if not ready:
            stuck = ", ".join(f"rank {rank} before {tuple(task)}" for rank, task, _ in heads)
            raise ValueError(f"plan: expected an order that comes to an end, got {stuck}")
        for rank, task, before in ready:
            begin = max([free[rank], *(done[t] for t in before)])
            free[rank] = done[task] = begin + took(task)
            spans.append(Span(rank, left[rank].pop(0), begin, done[task]))
    return sorted(spans, key=lambda span: (span.end, span.rank))


def held(tasks: Sequence[Task]) -> list[int]:
    """How many stages' activations, each of a micro-batch, a rank holds after each of its tasks.

    They are kept from "F" until the last task that needs them: "W" where there is one, else "B".
    """
    last = "W" if any(task.kind == "W" for task in tasks) else "B"
    steps, now = [], 0
    for task in tasks:
        now += (task.kind == "F") - (task.kind == last)
        steps.append(now)
    return steps


def wrong(group: Sequence[Sequence[Task]], size: int, n_micro: int) -> str:
    """What is wrong with a plan for one stage a rank, in words; empty if nothing.

    Each rank does the F and the B of its stage for each micro-batch once, and either all W or none.
    """
    if len(group) != size:
        return f"expected a list of tasks for each of {size} ranks, got {len(group)}"
    kinds = "FBW" if any(task.kind == "W" for tasks in group for task in tasks) else "FB"
    for rank, tasks in enumerate(group):
        times = Counter(map(tuple, tasks))
        for kind, i in itertools.product(kinds, range(n_micro)):
            if (n := times[kind, rank, i]) != 1:
                return f"rank {rank} does {kind} of micro-batch {i} {n} times, expected once"
        if len(tasks) != len(kinds) * n_micro:
            return f"rank {rank} has {len(tasks)} tasks, expected {len(kinds) * n_micro}"
    try:
        timed(group)
    except ValueError as error:
        return str(error)
    return ""
