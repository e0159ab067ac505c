"""The plot of a report of `bench`."""

from pathlib import Path

import matplotlib.pyplot as plt

from cnnlab.bench.measure import Timing
from cnnlab.kernels import BASE
from cnnlab.show import plots


def draw(report: dict, file: Path) -> None:
    """Save the speedups in a report of `bench.run` as an image file."""
    rows = report["results"]
    timings = {r["kernels"]: Timing(r["kernels"], tuple(r["samples"])) for r in rows}
    base = BASE if BASE in timings else report["ratio_to"]
    title = f"An epoch of {rows[0]['n_images']:,} images, batches of {rows[0]['batch']}"
    axes = plots.speedups(timings, base=base, per="epoch", title=title)
    axes.figure.savefig(file, dpi=150)
    plt.close(axes.figure)
