"""The plot of a report of `bench`."""

from pathlib import Path

import matplotlib.pyplot as plt

from cnnlab.bench import records
from cnnlab.bench.measure import Timing
from cnnlab.kernels import BASE
from cnnlab.show import plots


def keep(report: dict, folder: Path) -> Path:
    """Write a report of `bench.run` and its plot to a folder; the path of the report.

    Raises OSError where they cannot be.
    """
    path = records.keep(report, folder)
    draw(report, path.with_suffix(".png"))
    return path


def draw(report: dict, file: Path) -> None:
    """Save the speedups in a report of `bench.run` as an image file."""
    rows = report["results"]
    timings = {
        r["kernels"]: Timing(r["kernels"], tuple(r["samples"]), processes=r.get("processes", 1))
        for r in rows
    }
    base = BASE if BASE in timings else report["ratio_to"]
    title = f"An epoch of {rows[0]['n_images']:,} images, batches of {rows[0]['batch']}"
    if simd := records.vectors(report):
        title += f", with {simd}"
    axes = plots.speedups(timings, base=base, per="epoch", title=title)
    axes.figure.savefig(file, dpi=150)
    plt.close(axes.figure)
