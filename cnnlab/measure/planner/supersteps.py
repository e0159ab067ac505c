"""Ways to train as chains of supersteps: every rank computes, then all exchange messages.

That is the model of Valiant, "A bridging model for parallel computation", 1990, in which a step's
time is a sum. What ranks send each other is a matrix of bytes (P,P), from row to column.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.averaging import GRAPHS
from cnnlab.distributed.compressors import compressor
from cnnlab.measure.planner.machine import Machine, Packing, network_work
from cnnlab.measure.planner.messages import allreduce, nothing, pieces
from cnnlab.measure.planner.problem import Problem
from cnnlab.ranks.schedules import block


class Superstep(NamedTuple):
    """Seconds of computing, and then the bytes (P,P) that ranks send; `often` times in a step."""

    computing: float
    sent: np.ndarray
    often: float = 1.0


Chain = list[Superstep]


def duration(chain: Chain, machine: Machine) -> float:
    """The time of a chain: a sum."""
    return sum(step.computing + step.often * machine.exchange(step.sent) for step in chain)


def traffic(chain: Chain) -> np.ndarray:
    """The bytes (P,P) of a chain: a sum."""
    return np.sum([step.often * step.sent for step in chain], axis=0)


class Outline(NamedTuple):
    """A step: seconds, bytes (P,P), and the numbers that the fullest rank holds."""

    seconds: float
    sent: np.ndarray
    held: int


def alone(problem: Problem, machine: Machine) -> Chain:
    """Every rank the whole batch, as if there were no other."""
    computing = machine.gradients(problem.network, problem.batch)
    return [Superstep(computing, nothing(problem.n_ranks))]


def data(problem: Problem, machine: Machine, compress: str | None = None) -> Chain:
    """Gradients of a share of the batch, and a sum of them all."""
    computing = machine.gradients(problem.network, problem.share)
    if not compress:
        return [*after(computing, allreduce(problem.n_ranks, problem.n))]
    size, shard = problem.n_ranks, -(-problem.n // problem.n_ranks)
    encode, decode = (t.seconds(shard) for t in machine.packing.get(compress, Packing()))
    n_bytes = compressor(compress)(shard).n_bytes
    rounds = [n_bytes * np.roll(np.eye(size, dtype=int), k, 1) for k in range(1, size)]
    up = after(computing + size * encode, rounds)
    return [*up, *after(encode + size * decode, rounds), Superstep(size * decode, nothing(size))]


def averaging(problem: Problem, machine: Machine, every: int = 1, graph: str = "") -> Chain:
    """A step alone, and every so often an allreduce of models, or messages along a graph."""
    size, n = problem.n_ranks, problem.n
    alone = Superstep(machine.gradients(problem.network, problem.share), nothing(size))
    if not graph:
        return [alone, *after(0.0, allreduce(size, n), 1 / every)]
    turns = GRAPHS[graph].matrices(size)
    sent = [4 * n * ((turn > 0) & ~np.eye(size, dtype=bool)).T for turn in turns]
    return [alone, *(Superstep(0.0, matrix, 1 / every / len(turns)) for matrix in sent)]


def sharded(problem: Problem, machine: Machine) -> Chain:
    """A layer's parameters are gathered, both ways; its gradients are reduced and scattered."""
    network, size, share = problem.network, problem.n_ranks, problem.share
    chain, way_back = [], []
    for place, work in zip(network.places, network_work(network), strict=True):
        n = sum(map(prod, place.layer.parameter_shapes(place.input_shape).values()))
        owned, whole = [block(rank, size, n) for rank in range(size)], [(0, n)] * size
        gathered = pieces(owned, whole, 4)
        chain += [Superstep(0.0, gathered)]
        chain += [Superstep(machine.computing(work.forward, share), nothing(size))]
        if work.back:
            back = machine.computing(work.back, share)
            way_back = [Superstep(0.0, gathered), Superstep(back, gathered.T), *way_back]
    return chain + way_back


def after(computing: float, rounds: Sequence[np.ndarray], often: float = 1.0) -> Chain:
    """Computing, and then several rounds of messages."""
    first = [Superstep(computing, nothing(len(rounds[0])), 1.0)] if computing else []
    return first + [Superstep(0.0, sent, often) for sent in rounds]
