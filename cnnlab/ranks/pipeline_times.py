"""What a schedule of a pipeline takes, by counting: units of time, waiting, activations held."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cnnlab.ranks.pipeline_schedules import Task


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
    of: Sequence[Sequence[Task]],
    units: Mapping[str, float] | Callable[[Task], float] = UNITS,
    arrives: Callable[[Task, Task, float, float], float] = lambda before, task, done, free: done,
) -> list[Span]:
    """When the ranks do each task of a plan, in the order of their ends.

    `units` is the time of each kind of task on a rank that has one stage, where of several thin
    ones each takes its part; or a function of the task. `arrives` says when another task can use
    what one has found that was done at a time, by a rank that is free from a time on. Raises
    ValueError where ranks would wait for each other for ever.
    """
    n_stages = 1 + max(task.stage for tasks in of for task in tasks)
    took = units if callable(units) else lambda task: units[task.kind] * len(of) / n_stages
    left, free = [list(tasks) for tasks in of], [0.0] * len(of)
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
            there = [arrives(t, task, done[t], free[rank]) for t in before]
            begin = max([free[rank], *there])
            free[rank] = done[task] = begin + took(task)
            spans.append(Span(rank, left[rank].pop(0), begin, done[task]))
    return sorted(spans, key=lambda span: (span.end, span.rank))


def bubble(spans: Sequence[Span]) -> float:
    """The share of the ranks' time, up to the last one's end, in which they wait."""
    size, end = 1 + max(span.rank for span in spans), max(span.end for span in spans)
    return 1 - sum(span.end - span.begin for span in spans) / (size * end)


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


def held_over_time(spans: Sequence[Span]) -> list[list[tuple[float, int]]]:
    """By rank: from when on it holds how many activations, see `held`."""
    size, found = 1 + max(span.rank for span in spans), []
    for rank in range(size):
        mine = sorted((s for s in spans if s.rank == rank), key=lambda s: s.begin)
        counts = held([span.task for span in mine])
        begins = [s.begin if s.task.kind == "F" else s.end for s in mine]
        found.append([(0.0, 0), *zip(begins, counts, strict=True)])
    return found


def wrong(of: Sequence[Sequence[Task]], size: int, n_micro: int) -> str:
    """What is wrong with a plan for one stage a rank, in words; empty if nothing.

    Each rank does the F and the B of its stage for each micro-batch once, and either all W or none.
    """
    if len(of) != size:
        return f"expected a list of tasks for each of {size} ranks, got {len(of)}"
    kinds = "FBW" if any(task.kind == "W" for tasks in of for task in tasks) else "FB"
    for rank, tasks in enumerate(of):
        for kind in kinds:
            for i in range(n_micro):
                n = [tuple(task) for task in tasks].count((kind, rank, i))
                if n != 1:
                    return f"rank {rank} does {kind} of micro-batch {i} {n} times, expected once"
        if len(tasks) != len(kinds) * n_micro:
            return f"rank {rank} has {len(tasks)} tasks, expected {len(kinds) * n_micro}"
    try:
        timed(of)
    except ValueError as error:
        return str(error)
    return ""
