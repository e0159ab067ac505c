"""How training scales with the number of threads, and what stands in the way."""

import functools
import sys
from collections.abc import Callable

import numba
import numpy as np

from cnnlab.bench import measure, scaling_laws
from cnnlab.bench.contestants import Contestant
from cnnlab.bench.on_their_own import OnTheirOwn
from cnnlab.bench.steps import EPOCH, step_times
from cnnlab.kernels import KERNELS
from cnnlab.kernels.compiled import allreduce_memory
from cnnlab.kernels.threads.steps import crew_of
from cnnlab.runtime import thread_pool


def run(
    data, *, batch: int = 64, repeats: int = 11, min_time: float = 0.05, progress=sys.stderr
) -> dict:
    """Measure `threads` on one thread, two, and so on to all cores, and twice and four times that.

    Returns `n_threads`, their `seconds_per_epoch` with `seconds_interval`, the efficiency of each
    against `vector` on one thread, and the `machine_efficiency` of networks that have nothing in
    common, one a thread, which no program can pass (None for more threads than cores); the fitted
    laws, and `serial`: what does not become less with more threads, measured alone, part by part,
    as a share of a step on one thread. Numba must have room for that many threads, see
    `cnnlab.runtime.thread_pool`; else ValueError.
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
        found = {"vector": one} | many
        timings = step_times(found, others=others, repeats=repeats, min_time=min_time)
    runs = [timings[f"threads {n}"] for n in counts]
    # Ratios of samples from one moment: the machine's changes of speed drop out of the laws.
    whole, relative = runs[0].median, [float(measure.ratio(t, runs[0])) for t in runs]
    return {
        "n_threads": counts,
        "batch": batch,
        "seconds_per_epoch": [t.median * EPOCH / batch for t in runs],
        "seconds_interval": [[t.low * EPOCH / batch, t.high * EPOCH / batch] for t in runs],
        "efficiency": [
            measure.efficiency(measure.speedup(timings["vector"], t), n)
            for n, t in zip(counts, runs, strict=True)
        ],
        "machine_efficiency": [
            float(measure.ratio(timings["machine 1"], timings[f"machine {n}"]))
            for n in counts[:cores]
        ]
        + [None] * (len(counts) - cores),
        **laws(counts[:cores], relative[:cores]),
        "serial": {
            part: timings[part].median * times / whole for part, (_, times) in serial.items()
        },
    }


def laws(counts: list[int], relative: list[float]) -> dict:
    """What is fitted to times over that on one thread, up to the cores; None with too few points.

    A law needs a point more than it has numbers to find: three for Amdahl's (`amdahl`, the serial
    share), four for the Universal Scalability Law (`usl`, its two numbers).
    """
    enough = len(counts) > 2, len(counts) > 3
    return {
        "amdahl": scaling_laws.fit_amdahl(counts, relative).serial_fraction if enough[0] else None,
        "usl": vars(scaling_laws.fit_usl(counts, relative)) if enough[1] else None,
    }


def serial_parts(one: Contestant) -> dict[str, tuple[Callable[[], object], float]]:
    """What every thread of `threads` does or waits for, as calls; and how many a step has."""
    crew, _ = crew_of(one.replica.params.arrays, one.replica.images, one.batch)
    total, empty = crew.totals[0, : one.replica.params.flat.size], np.zeros(1024)
    return {
        "adding up gradients": (lambda: allreduce_memory.add_up(crew.parts, total), 1),
        "two barriers": (lambda: barriers(crew.parts, total, crew.counts, 1000), 2 / 1000),
        "starting the threads": (lambda: start_threads(empty), 1 / one.n_steps),
    }


@numba.njit(parallel=True)
def start_threads(places):
    """A parallel loop with nothing to do."""
    for t in numba.prange(places.size):
        places[t] = 0


@numba.njit
def starts(places, n):
    """n parallel loops with nothing to do, one after another."""
    for _ in range(n):
        start_threads(places)


@numba.njit(parallel=True)
def barriers(parts, total, counts, n):
    """n barriers, for as many threads as `parts` has rows; for the arguments see `Team`."""
    counts[:] = 0
    for _ in numba.prange(len(parts)):
        team = allreduce_memory.Team(len(parts), parts, total, counts)
        if allreduce_memory.all_running(team):
            for _again in range(n):  # Numba refuses to overwrite the index of the parallel loop
                allreduce_memory.barrier(team)


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
        lines.append(f"Fitted up to the cores: {scaling_laws.Amdahl(report['amdahl'])}.")
    if report["usl"] is not None:
        lines.append(f"Fitted up to the cores: {scaling_laws.Usl(**report['usl'])}.")
    parts = ", ".join(f"{name} {share:.1%}" for name, share in report["serial"].items())
    total = sum(report["serial"].values())
    lines.append(
        f"Measured alone, what more threads do not share: {total:.1%} of a step ({parts})."
    )
    return "\n".join(lines)
