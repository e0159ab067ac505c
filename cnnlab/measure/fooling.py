"""Exhibits: claims made from true numbers that mislead, and what a check of each finds.

The idea is that of D. H. Bailey, "Twelve ways to fool the masses when giving performance results on
parallel computers", Supercomputing Review, 1991.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from cnnlab.measure.planner.choose import Curve, to_accuracy
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import WAYS, Plan, planned
from cnnlab.measure.planner.problem import Problem
from cnnlab.ranks.virtual import Link

SLOW = Link(20e-6, 100e6)  # of the exhibit that asks for one


@dataclass(frozen=True)
class Exhibit:
    """A claim, the bars that are shown for it from `low` on, and what a check of it finds."""

    claim: str
    bars: Mapping[str, float]
    unit: str
    truth: str
    low: float = 0.0


@dataclass(frozen=True)
class Study:
    """What the exhibits are made of: a problem, a machine, curves, and samples of real steps.

    `samples` has seconds by way, on two real ranks; `alone` those of a step on one rank, by the
    strategy of its kernels.
    """

    problem: Problem
    machine: Machine
    curves: Mapping[str, Curve]
    samples: Mapping[str, Sequence[float]]
    alone: Mapping[str, float]
    target: float

    def plan(self, name: str, n_ranks: int = 0, batch: int = 0, link: Link | None = None) -> Plan:
        """The plan of a way, on so many ranks, with such a batch and link."""
        size, batch = n_ranks or self.problem.n_ranks, batch or self.problem.batch
        machine = replace(self.machine, link=link or self.machine.link)
        return planned(name, WAYS[name], Problem(self.problem.network, size, batch), machine)

    def speedup(self, n_ranks: int, batch: int) -> float:
        """That of data parallelism over one rank, planned."""
        alone = self.machine.gradients(self.problem.network, batch)
        return alone / self.plan("data", n_ranks, batch).seconds


def exhibits(study: Study) -> list[Exhibit]:
    """The ten of them, in order."""
    makers = (
        weak_base, without_accuracy, scaling, picked, bytes_for_time,
        as_real, best_run, cut_axis, part, extrapolated,
    )  # fmt: skip
    return [make(study) for make in makers]


def weak_base(of: Study) -> Exhibit:
    slow, fast, two = of.alone["loops"], of.alone["vector"], float(np.median(of.samples["data"]))
    return Exhibit(
        f"Two ranks are {slow / two:.1f} times faster than one.",
        {"1 rank": 1e3 * slow, "2 ranks": 1e3 * two},
        "a step, measured ms",
        f"The one rank ran other kernels, loops. With vector it takes {1e3 * fast:.2g} ms: "
        f"{fast / two:.1f} times.",
    )


def without_accuracy(of: Study) -> Exhibit:
    names = "data", "local every 8"
    plans = [of.plan(name, link=SLOW) for name in names]
    reached = [to_accuracy(plan, of.curves, of.target) for plan in plans]
    end = "is never reached so" if reached[1] == inf else f"comes {reached[0] / reached[1]:.1f}"
    end += "" if reached[1] == inf else " times as soon"
    return Exhibit(
        f"An epoch is {plans[0].seconds / plans[1].seconds:.1f} times faster with local SGD.",
        {plan.name: 1e3 * plan.seconds for plan in plans},
        f"a step, planned ms, {SLOW.bandwidth / 1e6:.0f} MB/s",
        f"{of.target:.0%} right {end}: it takes other numbers of steps.",
    )


def scaling(of: Study) -> Exhibit:
    sizes, batch = (4, 16, 64), of.problem.batch
    shown = {f"{p} ranks": 100 * of.speedup(p, p * batch) / p for p in sizes}
    strong = of.speedup(sizes[-1], batch) / sizes[-1]
    return Exhibit(
        f"{sizes[-1]} ranks train our network with {shown['64 ranks']:.0f} % efficiency.",
        shown,
        f"efficiency, planned %, {batch} images a rank",
        f"The batch grew with the ranks. With {batch} images for all it is {100 * strong:.1f} %.",
    )


def picked(of: Study) -> Exhibit:
    gains = {n: of.speedup(4, n) for n in (16, 64, 256, 1024)}
    best = max(gains, key=gains.get)
    found = ", ".join(f"{gain:.1f} at {n:,}" for n, gain in gains.items())
    return Exhibit(
        f"Four ranks are {gains[best]:.1f} times faster than one.",
        {"1 rank": 1.0, "4 ranks": gains[best]},
        f"speed, planned, batch {best:,}",
        f"It depends on the batch: {found}.",
    )


def bytes_for_time(of: Study) -> Exhibit:
    names = "data", "data one_bit"
    sent = [of.plan(name, 2).busiest for name in names]
    took = [float(np.median(of.samples[name])) for name in names]
    return Exhibit(
        f"One bit a number makes communication {sent[0] / sent[1]:.0f} times cheaper.",
        {name: n / 1e3 for name, n in zip(names, sent, strict=True)},
        "kB that a rank sends in a step",
        f"On two ranks here, a step takes {took[1] / took[0]:.2f} times as long as without.",
    )


def as_real(of: Study) -> Exhibit:
    sizes, batch = (1, 8, 64), 2048
    alone = 1e3 * of.machine.gradients(of.problem.network, batch)
    took = [alone, *(1e3 * of.plan("data", p, batch).seconds for p in sizes[1:])]
    return Exhibit(
        f"On this machine, 64 ranks train {took[0] / took[-1]:.0f} times faster.",
        {f"{p} rank{'s' * (p > 1)}": t for p, t in zip(sizes, took, strict=True)},
        "ms a step",
        f"No such run took place here: this machine has {os.cpu_count()} cores.",
    )


def best_run(of: Study) -> Exhibit:
    samples = 1e3 * np.array(of.samples["data"])
    return Exhibit(
        f"Data parallelism takes {samples.min():.2g} ms a step on two ranks.",
        {"data": float(samples.min())},
        "a step, measured ms",
        f"That was the best of {len(samples)}: the median is {np.median(samples):.2g}, "
        f"the worst {samples.max():.2g} ms.",
    )


def cut_axis(of: Study) -> Exhibit:
    took = {name: 1e3 * of.plan(name).seconds for name in ("model features", "model pixels")}
    first, second = sorted(took, key=took.get)
    gap = took[second] - took[first]
    return Exhibit(
        f"“{first}” is far faster than “{second}”.",
        {second: took[second], first: took[first]},
        "a step, planned ms",
        f"They differ by {gap / took[first]:.1%}.",
        low=took[first] - 0.1 * gap - 1e-3 * took[first],
    )


def part(of: Study) -> Exhibit:
    size, n = 8, of.problem.n
    whole = [of.plan(name, size).held for name in ("data", "sharded")]
    return Exhibit(
        f"On {size} ranks, sharding needs {size} times less memory.",
        {"data": 2 * n / 1e3, "sharded": 2 * n / size / 1e3},
        "thousand numbers: parameters and gradients",
        f"With activations, and a layer whole at its turn, it is {whole[0] / whole[1]:.1f} times.",
    )


def extrapolated(of: Study) -> Exhibit:
    few, many, batch = 4, 1024, 8 * of.problem.batch
    gain = {p: of.speedup(p, batch) for p in (2, few, 64)}
    line = 1 + (gain[few] - 1) * (many - 1) / (few - 1)
    return Exhibit(
        f"With {many:,} ranks we shall be {line:.0f} times faster.",
        {"1 rank": 1.0, "2 ranks": gain[2], f"{few} ranks": gain[few], f"{many:,} ranks": line},
        "speedup: planned, and a line drawn on",
        f"Nobody planned more than {few}. With 64 it is {gain[64]:.0f}; and a batch has {batch} "
        f"images, too few for {many:,}.",
    )


def tell(shown: Sequence[Exhibit], named: Sequence) -> None:
    """Print what a check of each exhibit finds, if `named` has a word for it, not `...`."""
    for number, (exhibit, word) in enumerate(zip(shown, named, strict=True), 1):
        print(f"{number:2}  {'first name its lie' if word is ... else exhibit.truth}")
