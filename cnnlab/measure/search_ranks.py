"""Searches on ranks: charged by a model in the virtual world, clocked on real ones."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cnnlab.ranks.record import Event, Record
from cnnlab.ranks.virtual import Link, World
from cnnlab.training.search import Done, Generations, Search, Trainer, Trial, search_on

PER_STEP, PER_IMAGE = 16e-6, 2.2e-6  # seconds, about as one core of a laptop takes


def seconds_of(trial: Trial, n_images: int) -> float:
    """How long a trial computes, by the model: for each of its steps, and for each image."""
    steps = trial.epochs * -(-n_images // trial.config["batch"])
    return steps * PER_STEP + trial.epochs * n_images * PER_IMAGE


def on_virtual_ranks(
    make: Callable[[], Search], trainer: Trainer, n_workers: int, *, generation: int = 0,
    speed: Mapping[int, float] | None = None, jitter: float = 0.0,
) -> tuple[list[Done], World]:  # fmt: skip
    """Search with so many virtual ranks, and rank 0 that leads: what was told, and their world.

    With `generation`, so many trials at a time. `speed` and `jitter` are those of the world.
    """
    world = World(1 + n_workers, Link(10e-6, 1e9), speed=speed or {}, jitter=jitter)

    def program(comm):
        def charged(trial, state):
            comm.compute(seconds_of(trial, len(trainer.data.train_images)))
            return trainer(trial, state)

        search = make() if comm.rank == 0 else None
        if generation and comm.rank == 0:
            search = Generations(search, generation)
        return search_on(comm, search, charged)

    return world.run(program)[0], world


def busy(record: Record, workers: Sequence[int]) -> np.ndarray:
    """The share of the run that each of these ranks computed."""
    begin, end = record.span()
    return record.seconds("compute")[list(workers)] / (end - begin)


def without_messages(record: Record) -> Record:
    """The same run for a picture with many messages, whose arrows would cover it."""
    return Record(record.size, record.events, [], record.virtual, record.network)


def clocked(done: Sequence[Done], n_ranks: int) -> Record:
    """What real ranks of one machine did, from the times that their trials report."""
    reports = [one.report for one in done]
    start = min(report["begin"] for report in reports)
    events = [Event(r["rank"], "compute", r["begin"] - start, r["end"] - start) for r in reports]
    return Record(n_ranks, events)
