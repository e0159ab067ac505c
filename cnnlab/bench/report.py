"""The report of `python -m cnnlab bench`, as data and as text."""

import sys
from collections.abc import Sequence

from cnnlab.bench import machine, measure
from cnnlab.bench.operations import layers
from cnnlab.bench.steps import EPOCH, FLOPS, contestants, epochs
from cnnlab.kernels import BASE
from cnnlab.runtime import text, thread_pool


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
    """Measure strategies on this machine; return the report that `bench --json` prints.

    Its `results` hold a row for each contestant: seconds per epoch, GFLOP/s, the share of one
    core's measured peak, the speedup over `ratio_to`, and the seconds of each operation. Times and
    speedups come with 95 % confidence intervals. Raises ValueError if there are fewer images
    than a batch has.
    """
    if batch > len(data.train_images):
        raise ValueError(
            f"batch: expected at most the {len(data.train_images)} images, got {batch}"
        )
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
            "",
            text.table([names, *operations], "<" + ">" * len(by_layer)),
        ]
    )
