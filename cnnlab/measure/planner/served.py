"""A parameter server is a queue: gradients and replies pass through one rank, one by one."""

import heapq
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.parcels import HEAD
from cnnlab.distributed.pool import END, Pool, Shares
from cnnlab.measure.planner import held
from cnnlab.measure.planner.machine import Machine, Packing
from cnnlab.measure.planner.messages import nothing
from cnnlab.measure.planner.problem import Problem
from cnnlab.measure.planner.supersteps import Outline

STEPS = 8  # of an epoch: as stale workers begin and end apart, a step is a part of that


class Queue(NamedTuple):
    """Seconds: of a worker `away` for so many images; of the server, `taking` and `giving`.

    A reply is there `later` than the server has turned to the next worker.
    """

    away: Callable[[int], float]
    taking: float
    giving: float
    later: float


def outline(
    problem: Problem, machine: Machine, staleness: int | str = 0, compress: str | None = None
) -> Outline:
    """A step: a STEPS-th of so many batches."""
    packed = compressor(compress)(problem.n).n_bytes if compress else 4 * problem.n
    up, down = packed + 8 * HEAD, 4 * (problem.n + 2)  # with the next piece of work
    packing = machine.packing.get(compress or "", Packing())
    its = queue(problem, machine, packing, up, down)
    seconds, pieces = passed(problem, its, inf if staleness == "any" else int(staleness))
    sent = nothing(problem.n_ranks).astype(float)
    sent[1:, 0], sent[0, 1:] = up * pieces / STEPS, down * pieces / STEPS
    return Outline(seconds / STEPS, sent, held.server(problem, compress))


def queue(problem: Problem, machine: Machine, packing: Packing, up: int, down: int) -> Queue:
    """What gradients of `up` bytes and replies of `down` take."""
    link, short = machine.link, up <= machine.link.eager
    # A long message leaves when its receiver is there, and both wait for it; a short one at once.
    travels, n = link.latency + link.sending(up), problem.n
    before = packing.encode.seconds(n) + link.call + travels * short
    taking = packing.decode.seconds(n) + link.call + travels * (not short)
    giving, later = link.call + link.sending(down), link.latency
    network = problem.network
    return Queue(lambda n: before + machine.gradients(network, n), taking, giving, later)


def passed(problem: Problem, its: Queue, staleness: float) -> tuple[float, np.ndarray]:
    """Seconds of STEPS batches, and the pieces (W) that workers take, as `Server.serve` has it."""
    now, workers = 0.0, problem.n_ranks - 1
    draw_from = Pool if staleness else Shares
    pool = draw_from(STEPS * problem.batch, problem.batch, workers, lambda: now)
    first = [(worker, *pool.draw(worker)) for worker in range(workers)]
    coming = [(its.away(b - a), worker, b - a) for worker, a, b in first if (a, b) != END]
    waiting, clocks = set(), np.zeros(workers, int)
    heapq.heapify(coming)
    while coming:
        there, worker, images = heapq.heappop(coming)
        now = max(now, there) + its.taking
        pool.back(worker, images)
        clocks[worker] += 1
        waiting.add(worker)
        may = [w for w in waiting if pool.empty or clocks[w] - clocks.min() <= staleness]
        for ready in sorted(may):
            waiting.remove(ready)
            piece = pool.draw(ready)
            now += its.giving
            if piece != END:
                images = piece[1] - piece[0]
                heapq.heappush(coming, (now + its.later + its.away(images), ready, images))
    return now + its.later, clocks
