"""Plans: what each way to train would take, send and hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from cnnlab.distributed import METHODS
from cnnlab.distributed.averaging import Averaging
from cnnlab.measure.planner import cut_layers, held, pipelined, served, supersteps
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.problem import Problem
from cnnlab.measure.planner.supersteps import Chain, Outline, duration, traffic
from cnnlab.ranks.pipeline import SCHEDULES


class Way(NamedTuple):
    """One of METHODS with its options, and what its training learns: as `alone`, or its own.

    A grid tells how long pipelines are, and how many ranks share a layer; for their number, see
    `on`. Steps are timed `in_a_row`: those from one message to the next, or so many that the first
    and the last of an epoch, where they differ, count for little.
    """

    method: str
    options: Mapping[str, object]
    learns: str = "as one rank"
    in_a_row: int = 1

    def on(self, n_ranks: int) -> dict[str, object]:
        """The options for so many ranks: a grid has as many pipelines as they are enough for."""
        options = dict(self.options)
        if "grid" in options:
            _, p, m = options["grid"]
            options["grid"] = (n_ranks // (p * m), p, m)
        return options

    @property
    def family(self) -> str:
        """The method that its own builds on; "averages", where every rank has its own model."""
        kind = METHODS[self.method].load()
        on = [name for name, of in METHODS.items() if issubclass(kind, of.load())]
        return "averages" if issubclass(kind, Averaging) else on[:2][-1]  # all on that of one rank


COMPRESSED = ("fp16", "int8", "qsgd4", "one_bit", "topk:0.01")
WAYS = {
    "alone": Way("alone", {}),
    "data": Way("data", {}),
    **{f"data {how}": Way("data", {"compress": how}, how) for how in COMPRESSED},
    "sharded": Way("sharded", {}),
    "layers": Way("layers", {}),
    "model features": Way("model", {"cut": "features"}),
    "model pixels": Way("model", {"cut": "pixels"}),
    "pipeline gpipe": Way("pipeline", {"schedule": "gpipe"}),
    "pipeline 1f1b": Way("pipeline", {"schedule": "1f1b"}),
    "hybrid Nx2x1": Way("hybrid", {"grid": (0, 2, 1)}),
    "hybrid Nx1x2": Way("hybrid", {"grid": (0, 1, 2)}),
    "hybrid Nx2x2": Way("hybrid", {"grid": (0, 2, 2)}),
    "server": Way("server", {}, in_a_row=served.STEPS),
    **{
        f"server {how}": Way("server", {"compress": how}, f"server {how}", served.STEPS)
        for how in COMPRESSED
    },
    "server stale 4": Way("server", {"staleness": 4}, "server stale 4", served.STEPS),
    "server stale any": Way("server", {"staleness": "any"}, "server stale any", served.STEPS),
    "local every 8": Way("local", {"every": 8}, "local every 8", 8),
    "elastic every 8": Way("elastic", {"every": 8}, "elastic every 8", 8),
    "gossip ring": Way("gossip", {"graph": "ring"}, "gossip ring"),
}


@dataclass(frozen=True)
class Plan:
    """What a step would take: seconds; bytes (P,P) that ranks send; numbers held, by the fullest.

    `held` counts float32: parameters, gradients, what compressors and servers keep, and activations
    for the way back; no buffers of messages.
    """

    name: str
    seconds: float
    sent: np.ndarray
    held: int

    @property
    def busiest(self) -> float:
        """The bytes that the rank sends that sends most."""
        return float(self.sent.sum(1).max())


def plans(problem: Problem, machine: Machine, ways: Mapping[str, Way] = WAYS) -> dict[str, Plan]:
    """A plan for each way that can be."""
    fit = {name: way for name, way in ways.items() if fits(way, problem)}
    return {name: planned(name, way, problem, machine) for name, way in fit.items()}


def fits(way: Way, problem: Problem) -> bool:
    """Whether there are layers for all stages, and ranks for two pipelines or more of a grid."""
    options, n_ranks = way.on(problem.n_ranks), problem.n_ranks
    d, p, m = options.get("grid", (1, n_ranks if "schedule" in options else 1, 1))
    n_stages = p * SCHEDULES[options.get("schedule", "1f1b")].chunks
    whole = "grid" not in options or (d > 1 and d * p * m == n_ranks)
    return whole and n_stages <= len(problem.network.places)


def planned(name: str, way: Way, problem: Problem, machine: Machine) -> Plan:
    """One plan. Ranks that meet are timed from barrier to barrier: one of them is in the time."""
    rounds = ceil(log2(problem.n_ranks))
    barrier = rounds * (machine.link.latency + 2 * machine.link.call) / way.in_a_row
    options = way.on(problem.n_ranks)
    if way.method in CHAINS:
        found = summed(*CHAINS[way.method], problem, machine, **options)
    else:
        found = OUTLINES[way.method](problem, machine, **options)
    return Plan(name, found.seconds + barrier * found.sent.any(), found.sent, found.held)


def summed(
    chain: Callable, holds: Callable, problem: Problem, machine: Machine, **options
) -> Outline:
    """The outline of a chain of supersteps; each counts by how often it is done."""
    steps: Chain = chain(problem, machine, **options)
    return Outline(duration(steps, machine), traffic(steps), holds(problem, **options))


# By method: its chain of supersteps, and what it holds.
CHAINS: dict[str, tuple[Callable[..., Chain], Callable[..., int]]] = {
    "alone": (supersteps.alone, held.alone),
    "layers": (cut_layers.layers, held.alone),
    "data": (supersteps.data, held.replicas),
    "local": (supersteps.averaging, held.replicas),
    "elastic": (supersteps.averaging, held.elastic),
    "gossip": (supersteps.averaging, held.replicas),
    "sharded": (supersteps.sharded, held.sharded),
    "model": (cut_layers.model, held.by_layers),
}
# Those that are no such chain: ranks wait for one neighbour, or in a queue.
OUTLINES: dict[str, Callable[..., Outline]] = {
    "pipeline": pipelined.outline,
    "hybrid": pipelined.outline,
    "server": served.outline,
}
