"""How training scales with the number of threads, and Amdahl's law fitted to it."""

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numba
import numpy as np

from cnnlab.kernels import KERNELS, allreduce
from cnnlab.kernels.threads import crew_of
from cnnlab.measure import timing
from cnnlab.measure.bench import EPOCH, Contestant, OnTheirOwn, step_times
from cnnlab.measure.timing import Timing
from cnnlab.runtime import thread_pool
from cnnlab.runtime.arguments import at_least


@dataclass(frozen=True)
class Amdahl:
    """Amdahl's law: the serial fraction of a program bounds its speedup (AFIPS 1967).

    Plots take any law that has `speedup(n)` and a `str`.
    """

    serial_fraction: float

    def speedup(self, n: float) -> float:
        """T(1) / T(n), the speedup on n workers."""
        return 1 / (self.serial_fraction + (1 - self.serial_fraction) / n)

    def __str__(self) -> str:
        return f"Amdahl, {100 * self.serial_fraction:.3g} % serial"


def fit_amdahl(workers: Sequence[int], times: Sequence[float | Timing]) -> Amdahl:
    """Fit T(n) / T(1) = s + (1 − s) / n by least squares, with s clipped to [0, 1].

    `times[i]` is the time on `workers[i]` workers, in seconds or as a Timing, whose median counts.
    Raises ValueError unless `workers` are distinct numbers, 1 and at least one other.
    """
    n, relative = _scaling(workers, times)
    ideal = 1 / n
    serial = (1 - ideal) @ (relative - ideal) / ((1 - ideal) @ (1 - ideal))
    return Amdahl(float(np.clip(serial, 0, 1)))


def _scaling(workers, times) -> tuple[np.ndarray, np.ndarray]:
    """Check the measurements that a law is fitted to; n and T(n) / T(1) as arrays."""
    seconds = np.array([t.median if isinstance(t, Timing) else t for t in times])
    if len(workers) != len(seconds):
        raise ValueError(f"times: expected one for each of {len(workers)}, got {len(seconds)}")
    for n in workers:
        at_least("workers", n, 1)
    if 1 not in workers or not 1 < len(set(workers)) == len(workers):
        raise ValueError(f"workers: expected 1 and other distinct numbers, got {list(workers)}")
    if not ((seconds > 0) & (seconds < math.inf)).all():
        raise ValueError(f"times: expected positive seconds, got {seconds.tolist()}")
    return np.array(workers), seconds / seconds[list(workers).index(1)]


# --- how training scales with the number of threads, and what stands in the way -------------------


def run(
    data, *, batch: int = 64, repeats: int = 11, min_time: float = 0.05, progress=sys.stderr
) -> dict:
    """Measure `threads` on one thread, two, and so on to all cores, and twice and four times that.

    Returns `n_threads`, their `seconds_per_epoch` with `seconds_interval`, the efficiency of each
    against `vector` on one thread, and the `machine_efficiency` of networks that have nothing in
    common, one a thread, which no program can pass (None for more threads than cores);
    `amdahl`, the serial share of the fitted law (None with two cores or fewer); and `serial`: what
    does not become less with more threads, measured alone, part by part, as a share of a step on
    one thread. Raises ValueError if Numba has no room for that many, see `runtime.thread_pool`.
    """
    cores = thread_pool.usable_cores()
    counts = sorted({*range(1, cores + 1), 2 * cores, 4 * cores})
    thread_pool.reserve(counts[-1])
    if progress is not None:
        print("measuring", ", ".join(map(str, counts)), "threads", file=progress)
    one = Contestant(KERNELS["vector"], data, batch)
    many = {f"threads {n}": Contestant(KERNELS["threads"], data, batch, n) for n in counts}
    on_their_own = OnTheirOwn(one, cores)
    others = {f"machine {n}": functools.partial(on_their_own, n) for n in counts[:cores]}
    with thread_pool.threads(cores), on_their_own.threads:
        serial = serial_parts(one)
        others |= {part: call for part, (call, _) in serial.items()}
        result = {"vector": one} | many
        timings = step_times(result, others=others, repeats=repeats, min_time=min_time)
    runs = [timings[f"threads {n}"] for n in counts]
    # Ratios of samples from one moment: the machine's changes of speed drop out of the law.
    whole, relative = runs[0].median, [float(timing.ratio(t, runs[0])) for t in runs]
    amdahl = None  # a law needs more points than it has numbers to find
    if cores > 2:
        amdahl = fit_amdahl(counts[:cores], relative[:cores]).serial_fraction
    return {
        "n_threads": counts,
        "batch": batch,
        "seconds_per_epoch": [t.median * EPOCH / batch for t in runs],
        "seconds_interval": [[t.low * EPOCH / batch, t.high * EPOCH / batch] for t in runs],
        "efficiency": [
            timing.efficiency(timing.speedup(timings["vector"], t), n)
            for n, t in zip(counts, runs, strict=True)
        ],
        "machine_efficiency": [
            float(timing.ratio(timings["machine 1"], timings[f"machine {n}"]))
            for n in counts[:cores]
        ]
        + [None] * (len(counts) - cores),
        "amdahl": amdahl,
        "serial": {
            part: timings[part].median * times / whole for part, (_, times) in serial.items()
        },
    }


def serial_parts(one: Contestant) -> dict[str, tuple[Callable[[], object], float]]:
    """What every thread of `threads` does or waits for, as calls; and how many a step has."""
    crew = crew_of(one.replica.params.network, one.batch)
    total, empty = crew.totals[0, : one.replica.params.flat.size], np.zeros(1024)
    return {
        "adding up gradients": (lambda: allreduce.add_up(crew.parts, total), 1),
        "two barriers": (lambda: barriers(crew.parts, total, crew.counts, 1000), 2 / 1000),
        "starting the threads": (lambda: start_threads(empty), 1 / one.n_steps),
    }


@numba.njit(parallel=True)
def start_threads(places):
    """A parallel loop with nothing to do."""
    for t in numba.prange(places.size):
        places[t] = 0


@numba.njit(parallel=True)
def barriers(parts, total, counts, n):
    """n barriers, for as many threads as `parts` has rows; for the arguments see `Team`."""
    counts[:] = 0
    for _ in numba.prange(len(parts)):
        team = allreduce.Team(len(parts), parts, total, counts)
        if allreduce.all_running(team):
            for _again in range(n):  # Numba refuses to overwrite the index of the parallel loop
                allreduce.barrier(team)


def table(report: dict) -> str:
    """The report of `run` as text for people."""
    lines = [
        f"An epoch of {EPOCH:,} images by `threads`, in batches of {report['batch']}",
        f"{'threads':>8} {'seconds':>24}  efficiency (against vector)  of networks on their own",
    ]
    columns = "n_threads", "seconds_per_epoch", "seconds_interval"
    columns += "efficiency", "machine_efficiency"
    for n, seconds, (low, high), efficiency, machine in zip(
        *(report[k] for k in columns), strict=True
    ):
        text = f"{seconds:.3g} ({low:.3g} to {high:.3g})"
        bound = "" if machine is None else f"  {machine:.2f}"
        lines.append(f"{n:8} {text:>24}  {efficiency:<27.2f}{bound}".rstrip())
    if report["amdahl"] is not None:
        lines.append(f"Fitted up to the cores: {Amdahl(report['amdahl'])}.")
    parts = ", ".join(f"{name} {share:.1%}" for name, share in report["serial"].items())
    total = sum(report["serial"].values())
    lines.append(
        f"Measured alone, what more threads do not share: {total:.1%} of a step ({parts})."
    )
    return "\n".join(lines)
