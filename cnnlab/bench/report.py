"""What `python -m cnnlab bench` measures, as data and as text."""

import sys
from collections.abc import Sequence

from cnnlab.bench import machine, measure
from cnnlab.bench.operations import layers
from cnnlab.bench.steps import EPOCH, FLOPS, contestants, epochs
from cnnlab.kernels import BASE
from cnnlab.runtime import thread_pool


def run(
    names: Sequence[str],
    data,
    *,
    batch: int = 64,
    n_threads: int = 1,
    against: str | None = None,
    repeats: int = 11,
    progress=sys.stderr,
) -> dict:
    """Measure strategies on this machine; return what `python -m cnnlab bench --json` prints.

    `results` has a row for each contestant: seconds per epoch with their 95 % interval, GFLOP/s
    and their share of one core's measured peak, seconds per epoch of each operation, and how many
    times faster it is than `ratio_to`, with its interval.
    """
    print("measuring whole steps beside the peak of one core, then layers", file=progress)
    found = contestants(names, data, batch, n_threads, against)
    timings = epochs(found, batch, repeats, peak=True)
    peak = timings.pop("peak")
    with thread_pool.threads(n_threads):
        by_layer = layers(names, batch, max(3, repeats // 2))
    base = against or (BASE if BASE in names else names[0])
    results = []
    for name, timing in timings.items():
        ratio = measure.speedup(timings[base], timing)
        results.append(
            {
                "kernels": name,
                "n_threads": found[name].n_threads,
                "n_ranks": 1,
                "data": data.name,
                "n_images": EPOCH,
                "batch": batch,
                "epochs": 1,
                "seconds_per_epoch": timing.median,
                "seconds_interval": [timing.low, timing.high],
                "samples": list(timing.samples),
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
                "machine": found[name].hardware,
            }
        )
    return {
        "results": results,
        "ratio_to": base,
        "peak_gflops": FLOPS / peak.median / 1e9,
        "machine": machine.describe(),
    }


def table(report: dict) -> str:
    """The report of `run` as text for people."""
    batch, base = report["results"][0]["batch"], report["ratio_to"]
    lines = [
        f"An epoch of {EPOCH:,} images at batch {batch}, median and 95 % interval; one core's "
        f"measured peak: {report['peak_gflops']:.0f} GFLOP/s",
        f"{'':10} {'seconds':>24} {'GFLOP/s':>8} {'of peak':>8}  times faster than {base}",
    ]
    for row in report["results"]:
        low, high = row["seconds_interval"]
        seconds = f"{row['seconds_per_epoch']:.3g} ({low:.3g} to {high:.3g})"
        faster = "{:.3g} ({:.3g} to {:.3g})".format(row["ratio"], *row["ratio_interval"])
        lines.append(
            f"{row['kernels']:10} {seconds:>24} {row['gflops']:8.1f} "
            f"{row['peak_fraction']:8.0%}  {faster}"
        )
    named = [row for row in report["results"] if row["layers"]]
    lines += ["", "Seconds per epoch by operation" + "".join(f"{r['kernels']:>12}" for r in named)]
    for operation in named[0]["layers"]:
        figures = "".join(f"{row['layers'][operation]:12.3g}" for row in named)
        lines.append(f"  {operation:28}{figures}")
    return "\n".join(lines)
