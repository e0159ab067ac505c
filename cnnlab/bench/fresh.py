"""Epochs timed in fresh processes, one process after the other.

Where a process's arrays and code lie, and what the machine does in its minute, changes times by
more than the samples within a process do: Mytkowicz et al., "Producing Wrong Data Without Doing
Anything Obviously Wrong", ASPLOS'09; Kalibera and Jones, "Rigorous Benchmarking in Reasonable
Time", ISMM'13.
"""

import functools
import multiprocessing
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from cnnlab.bench import machine, steps
from cnnlab.bench.contestants import Contestant
from cnnlab.bench.measure import Timing, pooled
from cnnlab.bench.on_their_own import OnTheirOwn
from cnnlab.kernels import KERNELS
from cnnlab.runtime import thread_pool

ALONE, TOGETHER, PEAK = "one on its own", "one a core", "peak"


def epochs(
    processes: int,
    names: Sequence[str],
    data,
    batch: int,
    n_threads: int,
    against: str | None,
    repeats: int,
) -> tuple[dict[str, Timing], dict[str, dict]]:
    """The time of an epoch by each contestant, over that many fresh processes; facts about each.

    With one, it is measured in this process. Beside the contestants of `steps.contestants` there
    are PEAK, an epoch's multiply-adds at the peak of one core, and, where there are several cores,
    the networks of `OnTheirOwn`: ALONE, one of them, and TOGETHER, one on each of the cores.
    """
    plan = names, data, batch, n_threads, against, repeats
    if processes == 1:
        return in_this_process(*plan)
    found = []
    for _ in range(processes):
        with ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL)
        ) as one:
            found.append(one.submit(in_this_process, *plan).result())
    timings, facts = zip(*found, strict=True)
    return {name: pooled([one[name] for one in timings]) for name in timings[0]}, facts[0]


def in_this_process(names, data, batch, n_threads, against, repeats):
    """What `epochs` returns, all alternating."""
    found = steps.contestants(names, data, batch, n_threads, against)
    sweep, flops = machine.peak_sweep()
    others, factors = {PEAK: sweep}, {PEAK: steps.FLOPS / flops}
    cores = thread_pool.usable_cores()
    if cores > 1:
        on_their_own = OnTheirOwn(Contestant(KERNELS["vector"], data, batch), cores)
        others |= {ALONE: functools.partial(on_their_own, 1)}
        others |= {TOGETHER: functools.partial(on_their_own, cores)}
    timings = steps.step_times(found, others=others, repeats=repeats)
    facts = {
        name: {"n_threads": one.n_threads, "machine": one.hardware} for name, one in found.items()
    }
    return {
        name: steps.scaled(timing, factors.get(name, steps.EPOCH / batch))
        for name, timing in timings.items()
    }, facts
