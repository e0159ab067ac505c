"""The figures of the report *Parallelizing Convolutional Neural Networks* (2024)."""

import tomllib
from importlib import resources
from typing import NamedTuple


def report() -> dict:
    """The report's figures by what they measure, unrounded, in seconds.

    Keys: `source`, `images_per_epoch`, `sequential` (`epoch_seconds`, and `layer_seconds` of an
    epoch), `openmp` and `mpi` (`threads` or `ranks`, `speedup`; None where the machine crashed),
    `cuda` (`layer_threads`, `layer_seconds`, `layer_speedups`, `network_…` alike, `measured_on`).
    What was computed from the tables, and not printed in them, is left to the lessons.
    """
    result = read_toml("report_tables")
    speedups = result["openmp"]["speedup"]
    result["openmp"]["speedup"] = [None if isinstance(one, str) else one for one in speedups]
    return result


def read_toml(name: str) -> dict:
    """A file of this folder: "published", "report_tables" or "report_listings"."""
    file = resources.files("cnnlab.data").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


# --- kernels in CUDA C of the report *Parallelizing Convolutional Neural Networks* (2024) ---------


class Listing(NamedTuple):
    """A kernel as it is printed: `text`, the section it is in and what the report `says` of it.

    `grid` and `block` are those of its launch; `launch` says which of them the report gives.
    """

    name: str
    section: str
    says: str
    launch: str
    grid: list[int]
    block: list[int]
    text: str

    def __str__(self) -> str:
        return f"Section {self.section}: “{self.says}”\n{self.text}"


def report_listings() -> dict[str, Listing]:
    """Seven kernels of the report by name, as they are printed, with their faults."""
    return {name: Listing(name, **row) for name, row in read_toml("report_listings").items()}
