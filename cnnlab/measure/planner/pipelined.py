"""A pipeline is no chain of supersteps: ranks wait for the stage below, not for all."""

from collections.abc import Sequence
from math import prod

import numpy as np

from cnnlab.distributed.model import cuts, length
from cnnlab.distributed.pipe import stages
from cnnlab.measure.planner.cut_layers import sliced
from cnnlab.measure.planner.held import kept, of_shares
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.messages import allreduce, nothing
from cnnlab.measure.planner.problem import Problem
from cnnlab.measure.planner.supersteps import Outline, after, duration, traffic
from cnnlab.ranks.pipeline import SCHEDULES, Task, plan, timed
from cnnlab.ranks.schedules import block

KINDS = {"F": "forward", "B": "backward", "W": "weights"}


class Pipelined:
    """Pipelines of a problem: their stages, and what a schedule makes of them.

    A `grid` of d × p × m ranks, as `Hybrid` has it, is d pipelines of p ranks' length, in each
    layer of which m ranks have shares; without one, all ranks are one pipeline.
    """

    def __init__(
        self,
        problem: Problem,
        schedule: str = "1f1b",
        n_micro: int = 8,
        grid: Sequence[int] | None = None,
        cut: str = "features",
    ):
        self.problem, self.network, self.cut = problem, problem.network, cut
        d, p, m = self.grid = tuple(grid or (1, problem.n_ranks, 1))
        self.n_micro = n_micro if p > 1 else 1
        self.n_stages = p * SCHEDULES[schedule].chunks
        self.cuts = stages(self.network, self.n_stages)
        self.tasks = plan(schedule, p, self.n_micro)
        self.split = any(task.kind == "W" for task in self.tasks[0])
        most = -(-problem.batch // d)
        self.images = [length(block(i, self.n_micro, most)) for i in range(self.n_micro)]
        self.parts = cuts(self.network, m, cut)
        self.shares = of_shares(self.network, m, cut)

    def sent(self) -> np.ndarray:
        """The bytes (P,P) of a step: between stages, within layers, and for the sum of all."""
        d, p, m = self.grid
        ranks, found = np.arange(d * p * m).reshape(d, p, m), nothing(d * p * m)
        for i in range(d):
            batch = length(block(i, d, self.problem.batch))
            layers = sliced(self.network, m, batch, Machine(), self.cut)
            for stage in range(self.n_stages):
                mine, below = ranks[i, stage % p], ranks[i, (stage - 1) % p]
                for chain in (part for layer in self.of(stage, layers) for part in layer):
                    found[np.ix_(mine, mine)] += np.array(traffic(chain), int)
                found[below, mine] += self.message(stage, batch)
                if self.cuts[stage] > self.network.first_learned:
                    found[mine, below] += self.message(stage, batch)
        for j, k in np.ndindex(p, m):
            same = np.ix_(ranks[:, j, k], ranks[:, j, k])
            found[same] += sum(allreduce(d, int(self.parameters(j)[k])))
        return found * (1 - np.eye(len(found), dtype=int))  # what stays on a rank is no message

    def seconds(self, machine: Machine) -> float:
        """Until the last rank has done its last task, and gradients are added up."""
        m, link = self.grid[2], machine.link
        layers = {n: sliced(self.network, m, n, machine, self.cut) for n in {*self.images}}

        def doing(kind: str, task: Task) -> float:
            n = self.images[task.micro]
            its = self.of(task.stage, layers[n]) if n else []  # a small batch fills few of them
            return sum(duration(getattr(layer, kind), machine) for layer in its)

        def behind(task: Task) -> float:  # what a task does when it has sent what others wait for
            return doing("weights", task) * (task.kind == "B" and not self.split)

        def took(task: Task) -> float:
            to = task.stage + {"F": 1, "B": 0}.get(task.kind, self.n_stages)
            n_bytes = self.longest(to, task.micro)
            sending = link.call + link.sending(n_bytes)  # by the rank itself, if it need not wait
            own = doing(KINDS[task.kind], task) + behind(task)
            return own + sending * (0 < n_bytes <= link.eager)

        def arrives(before: Task, task: Task, done: float, free: float) -> float:
            if before.stage == task.stage:
                return done
            n_bytes = self.longest(max(before.stage, task.stage), task.micro)
            sent = done - behind(before)
            if n_bytes > link.eager:  # it waits for its receiver
                return max(sent, free) + 2 * link.call + link.latency + link.sending(n_bytes)
            return sent + (link.call + link.latency) * (n_bytes > 0)

        ends = {span.rank: span.end for span in timed(self.tasks, took, arrives)}
        return max(end + self.adding(j, machine) for j, end in ends.items())

    def adding(self, j: int, machine: Machine) -> float:
        """Seconds in which the ranks at a place of all pipelines add up their gradients."""
        d, _, m = self.grid
        layers = sliced(self.network, m, 1, machine, self.cut)
        shared = [s for stage in self.at(j) for its in self.of(stage, layers) for s in its.shared]
        gradients = after(0.0, allreduce(d, int(self.parameters(j).max())))
        return duration(shared, machine) + duration(gradients, machine)

    def longest(self, stage: int, micro: int) -> int:
        """The bytes of the longest message of a micro-batch to a stage from the one below."""
        return int(self.message(stage, self.images[micro]).max())

    def message(self, stage: int, n_images: int) -> np.ndarray:
        """The bytes (m,) of so many images from the ranks of the stage below to those of a stage.

        Zeros where there is none below, or it is on the same rank.
        """
        if not 0 < stage < self.n_stages or self.grid[1] == 1:
            return np.zeros(self.grid[2], int)
        below = self.cuts[stage] - 1
        shape, (axis, ranges) = self.network.places[below].shape, self.parts[below]
        row = 4 * n_images * prod(shape) // shape[axis - 1]
        return np.array([row * length(its) for its in ranges])

    def held(self) -> int:
        """Parameters, gradients and kept activations on the rank that has most, in numbers."""
        most, last = 0, "W" if self.split else "B"
        for j, tasks in enumerate(self.tasks):
            now = peak = np.zeros(self.grid[2])
            for kind, stage, micro in tasks:
                change = (kind == "F") - (kind == last)
                now = now + change * self.images[micro] * self.kept(stage)
                peak = np.maximum(peak, now)
            most = max(most, round((peak + 2 * self.parameters(j)).max()))
        return most

    def at(self, j: int) -> range:
        """The stages at a place of a pipeline."""
        return range(j, self.n_stages, self.grid[1])

    def of(self, stage: int, layers: Sequence) -> Sequence:
        """Those of a stage, of one thing for each layer."""
        return layers[self.cuts[stage] : self.cuts[stage + 1]]

    def parameters(self, j: int) -> np.ndarray:
        """The parameters (m,) at a place of a pipeline, on each rank."""
        return sum(its.parameters for stage in self.at(j) for its in self.of(stage, self.shares))

    def kept(self, stage: int) -> np.ndarray:
        """The numbers (m,) that a stage keeps of an image."""
        return kept(self.of(stage, self.shares))


def outline(problem: Problem, machine: Machine, **options) -> Outline:
    """What a step of a pipeline takes, sends and holds."""
    pipe = Pipelined(problem, **options)
    return Outline(pipe.seconds(machine), pipe.sent(), pipe.held())
