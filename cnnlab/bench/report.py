"""The report of `python -m cnnlab bench`, as data and as text."""

import sys
from collections.abc import Sequence

from cnnlab.bench import fresh, machine, measure
from cnnlab.bench.operations import layers
from cnnlab.bench.steps import EPOCH, FLOPS
from cnnlab.kernels import BASE
from cnnlab.runtime import text, thread_pool

QUIET = 0.97  # of the speed of one network alone; below, cores are busy with something else


def run(
    names: Sequence[str],
    data,
    *,
    batch: int = 64,
    n_threads: int = 1,
    against: str | None = None,
    repeats: int = 11,
    processes: int = 1,
    progress=sys.stderr,
) -> dict:
    """Measure strategies on this machine; return the report that `bench --json` prints.

    Its `results` hold a row for each contestant: seconds per epoch, GFLOP/s, the share of one
    core's measured peak, the speedup over `ratio_to`, and the seconds of each operation. Times and
    speedups come with intervals that hold for one process, or for as many fresh `processes`.
    `bound` is how fast each of the networks of `OnTheirOwn` is beside one alone, None on one core;
    measured anew, once, where it is below QUIET.
    Raises ValueError if there are fewer images than a batch has.
    """
    if batch > len(data.train_images):
        raise ValueError(
            f"batch: expected at most the {len(data.train_images)} images, got {batch}"
        )
    where = "in this process" if processes == 1 else f"in {processes} fresh processes"
    print(f"measuring whole steps {where}, then layers", file=progress)
    plan = processes, names, data, batch, n_threads, against, repeats
    timings, facts = fresh.epochs(*plan)
    if (bound := of_cores(timings)) and bound < QUIET:
        print(f"not quiet: {told(bound)}; measuring again", file=progress)
        again, facts = fresh.epochs(*plan)
        if of_cores(again) > bound:
            timings, bound = again, of_cores(again)
    peak = timings[fresh.PEAK]
    with thread_pool.threads(n_threads):
        by_layer = layers(names, batch, max(3, repeats // 2))
    base = against or (BASE if BASE in names else names[0])
    results = []
    for name in facts:
        timing = timings[name]
        ratio = measure.speedup(timings[base], timing)
        results.append(
            {
                "kernels": name,
                "n_ranks": 1,
                "data": data.name,
                "n_images": EPOCH,
                "batch": batch,
                "epochs": 1,
                "seconds_per_epoch": timing.median,
                "seconds_interval": [timing.low, timing.high],
                "samples": list(timing.samples),
                "processes": timing.processes,
                "images_per_second": EPOCH / timing.median,
                "train_loss": None,
                "test_accuracy": None,
                "gflops": FLOPS / timing.median / 1e9,
                "peak_fraction": measure.ratio(peak, timing).value,
                "ratio_to": base,
                "ratio": ratio.value,
                "ratio_interval": [ratio.low, ratio.high],
                "layers": {
                    operation: of[name].median * EPOCH / batch
                    for operation, of in by_layer.items()
                    if name in of
                },
                **facts[name],
            }
        )
    return {
        "results": results,
        "ratio_to": base,
        "peak_gflops": FLOPS / peak.median / 1e9,
        "bound": bound,
        "machine": machine.describe(),
    }


def of_cores(timings: dict[str, measure.Timing]) -> float | None:
    """How fast networks on their own are on all cores at once, beside one alone."""
    if fresh.TOGETHER not in timings:
        return None
    return measure.ratio(timings[fresh.ALONE], timings[fresh.TOGETHER]).value


def told(bound: float) -> str:
    """The bound of a machine with several cores in words."""
    return f"networks on their own, one a core, have {bound:.2f} of the speed of one alone"


def efficiencies(report: dict) -> list[str]:
    """A line on the cores, and one for each contestant on several threads."""
    if report["bound"] is None:
        return []
    quiet = "" if report["bound"] >= QUIET else ": this machine was not quiet, or its cores share"
    lines = [f"{told(report['bound'])}{quiet}."]
    here = [row for row in report["results"] if row["machine"] == report["machine"]["cpu"]]
    alone = [row for row in here if row["n_threads"] == 1]
    for row in here if alone else []:
        if row["n_threads"] > 1:
            one = min(alone, key=lambda other: other["seconds_per_epoch"])
            speedup = one["seconds_per_epoch"] / row["seconds_per_epoch"]
            efficiency = measure.efficiency(speedup, row["n_threads"])
            lines.append(
                f"{row['kernels']} on {row['n_threads']} threads: efficiency {efficiency:.2f} "
                f"against {one['kernels']}, {efficiency / report['bound']:.2f} of that bound."
            )
    return lines


def table(report: dict) -> str:
    """A report of `run` as text."""
    batch, results = report["results"][0]["batch"], report["results"]
    head = "", "seconds", "GFLOP/s", "of peak", f"times faster than {report['ratio_to']}"
    steps = [
        (
            row["kernels"],
            "{:.3g} ({:.3g} to {:.3g})".format(row["seconds_per_epoch"], *row["seconds_interval"]),
            f"{row['gflops']:.1f}",
            f"{row['peak_fraction']:.0%}",
            "{:.3g} ({:.3g} to {:.3g})".format(row["ratio"], *row["ratio_interval"]),
        )
        for row in results
    ]
    by_layer = [row for row in results if row["layers"]]
    operations = [
        (operation, *(f"{row['layers'][operation]:.3g}" for row in by_layer))
        for operation in by_layer[0]["layers"]
    ]
    names = "seconds by operation", *(row["kernels"] for row in by_layer)
    return "\n".join(
        [
            f"An epoch of {EPOCH:,} images at batch {batch}, median and 95 % interval; one core's "
            f"measured peak: {report['peak_gflops']:.0f} GFLOP/s",
            text.table([head, *steps], "<>>><"),
            *efficiencies(report),
            "",
            text.table([names, *operations], "<" + ">" * len(by_layer)),
        ]
    )
