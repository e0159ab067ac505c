"""How training scales with the number of threads, and Amdahl's law fitted to it."""

import functools
import sys
from collections.abc import Callable, Sequence

import numba
import numpy as np

from cnnlab.kernels import KERNELS, allreduce
from cnnlab.kernels.threads import crew_of
from cnnlab.measure import timing
from cnnlab.measure.bench import EPOCH, Contestant, OnTheirOwn, step_times
from cnnlab.runtime import thread_pool


def serial_share(workers: Sequence[int], relative: Sequence[float]) -> float:
    """The serial share s, from 0 to 1, with which Amdahl's law fits best, by least squares.

    The law (AFIPS 1967): T(n) / T(1) = s + (1 − s) / n, which is `relative[i]` for n `workers[i]`.
    """
    ideal = 1 / np.asarray(workers)
    share = (1 - ideal) @ (relative - ideal) / ((1 - ideal) @ (1 - ideal))
    return float(np.clip(share, 0, 1))


def run(data, batch: int, repeats: int) -> dict:
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
    print("measuring", ", ".join(map(str, counts)), "threads", file=sys.stderr)
    one = Contestant(KERNELS["vector"], data, batch)
    many = {f"threads {n}": Contestant(KERNELS["threads"], data, batch, n) for n in counts}
    on_their_own = OnTheirOwn(one, cores)
    others = {f"machine {n}": functools.partial(on_their_own, n) for n in counts[:cores]}
    with thread_pool.threads(cores), on_their_own.threads:
        serial = serial_parts(one)
        others |= {part: call for part, (call, _) in serial.items()}
        result = {"vector": one} | many
        timings = step_times(result, others=others, repeats=repeats, min_time=0.05)
    runs = [timings[f"threads {n}"] for n in counts]
    # Ratios of samples from one moment: the machine's changes of speed drop out of the law.
    whole, relative = runs[0].median, [float(timing.ratio(t, runs[0])) for t in runs]
    amdahl = None  # a law needs more points than it has numbers to find
    if cores > 2:
        amdahl = serial_share(counts[:cores], relative[:cores])
    report = {"n_threads": counts, "batch": batch, "amdahl": amdahl}
    report["seconds_per_epoch"] = [t.median * EPOCH / batch for t in runs]
    report["seconds_interval"] = [[t.low * EPOCH / batch, t.high * EPOCH / batch] for t in runs]
    speedups = [float(timing.speedup(timings["vector"], t)) for t in runs]
    report["efficiency"] = [s / n for n, s in zip(counts, speedups, strict=True)]
    alone, together = timings["machine 1"], [timings[f"machine {n}"] for n in counts[:cores]]
    unknown = [None] * (len(counts) - cores)
    report["machine_efficiency"] = [*(float(timing.ratio(alone, t)) for t in together), *unknown]
    shares = {part: timings[part].median * times / whole for part, (_, times) in serial.items()}
    return report | {"serial": shares}


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
        lines.append(f"Fitted up to the cores: Amdahl, {100 * report['amdahl']:.3g} % serial.")
    parts = ", ".join(f"{name} {share:.1%}" for name, share in report["serial"].items())
    total = sum(report["serial"].values())
    lines.append(
        f"Measured alone, what more threads do not share: {total:.1%} of a step ({parts})."
    )
    return "\n".join(lines)
