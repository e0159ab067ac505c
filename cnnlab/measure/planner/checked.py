"""Plans beside runs: the same ways, tried in the virtual world and on real ranks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from cnnlab.distributed import trial
from cnnlab.distributed.trial import Charged
from cnnlab.kernels import KERNELS
from cnnlab.measure.planner.plan import WAYS, Plan, fits
from cnnlab.measure.planner.problem import Problem
from cnnlab.network import NETWORKS
from cnnlab.ranks import world


class Seen(NamedTuple):
    """What a step of a way took in the virtual world, and the bytes (P,P) of a step."""

    seconds: float
    sent: np.ndarray


class Agreement(NamedTuple):
    """How far plans are right: Spearman's rank correlation; relative errors, median and worst."""

    correlation: float
    median: float
    worst: float
    name: str  # of the worst

    def __str__(self) -> str:
        return (
            f"rank correlation {self.correlation:.2f}, error {self.median:.1%} in the median, "
            f"{self.worst:.1%} at worst ({self.name})"
        )


def virtual(
    network: str, n_ranks: int, batch: int, link: str, names: Iterable[str] = WAYS
) -> dict[str, Seen]:
    """A step of each way that can be, on virtual ranks, kernels charged by a model."""
    problem, found = Problem(NETWORKS[network], n_ranks, batch), {}
    for name in (name for name in names if fits(WAYS[name], problem)):
        way, worlds = WAYS[name], [trial.Counting(n_ranks, link) for _ in range(2)]
        how = {"batch": batch, "in_a_row": way.in_a_row, **way.on(n_ranks)}

        def program(comm, repeats: int, way=way, how=how) -> list[float]:
            kernels = Charged(KERNELS["vector"], comm)
            return trial.seconds(comm, way.method, network, repeats, kernels=kernels, **how)

        worlds[0].run(program, 0)  # the step to warm up, which counts for nothing
        seconds = worlds[1].run(program, 1)[0][0]
        found[name] = Seen(seconds, (worlds[1].sent - worlds[0].sent) / way.in_a_row)
    return found


def real(network: str, batch: int, names: Sequence[str] = tuple(WAYS), repeats: int = 9) -> dict:
    """On each rank of a cluster: by name, samples of the seconds of a step; the ways take turns.

    Of the names, those that can be on so many ranks.
    """
    comm = world()
    problem = Problem(NETWORKS[network], comm.size, batch)
    ways = {name: WAYS[name] for name in names if fits(WAYS[name], problem)}
    found = {name: [] for name in ways}
    tried = {
        name: trial.Trial(comm, way.method, network, batch=batch, **way.on(comm.size))
        for name, way in ways.items()
    }
    for _ in range(repeats):
        for name, its in tried.items():
            found[name] += its.seconds(1, WAYS[name].in_a_row)
    for its in tried.values():
        its.method.close()
    return comm.bcast(found)


def medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each."""
    return {name: float(np.median(of)) for name, of in samples.items()}


def agreement(plans: Mapping[str, Plan], seconds: Mapping[str, float]) -> Agreement:
    """How the planned seconds of the ways that have been run compare with theirs."""
    names = [name for name in plans if name in seconds]
    planned = np.array([plans[name].seconds for name in names])
    taken = np.array([seconds[name] for name in names])
    errors = abs(planned / taken - 1)
    worst = int(errors.argmax())
    correlation = float(spearmanr(planned, taken).statistic)
    return Agreement(correlation, float(np.median(errors)), float(errors[worst]), names[worst])


def table(plans: Mapping[str, Plan], seconds: Mapping[str, float] | None = None) -> str:
    """A line for each plan: ms of a step as planned and as seen, kB sent, thousand numbers held.

    With `seconds` of runs, only those that were run. Columns are narrow, for a phone.
    """
    names = [name for name in plans if seconds is None or name in seconds]
    of = [plans[name] for name in names]
    columns = [["", "", *names], ["plan", "ms", *(short(1e3 * plan.seconds) for plan in of)]]
    if seconds is not None:
        columns.append(["seen", "ms", *(short(1e3 * seconds[name]) for name in names)])
    columns.append(["sent", "kB", *(short(plan.busiest / 1e3) for plan in of)])
    columns.append(["held", "×1000", *(f"{plan.held / 1e3:,.0f}" for plan in of)])
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        f"{name:{widths[0]}} " + " ".join(map(str.rjust, cells, widths[1:]))
        for name, *cells in zip(*columns, strict=True)
    )


def short(number: float) -> str:
    """A number with four digits, or all that are before its point."""
    digits = len(f"{number:.0f}")
    return f"{number:,.{max(0, 4 - digits)}f}" if number else "0"


def agreements(found: Mapping[str, Agreement]) -> str:
    """A line for each, by name: order, error in the median and at worst, and where that was."""
    rows = [f"{'':8}{'order':>5}{'median':>8}{'worst':>7}"]
    for name, its in found.items():
        errors = f"{its.median:8.1%}{its.worst:7.1%}"
        rows.append(f"{name:8}{its.correlation:5.2f}{errors}  {its.name}")
    return "\n".join(rows)
