"""The figures of the report *Parallelizing Convolutional Neural Networks* (2024)."""

import tomllib
from importlib import resources
from typing import NamedTuple


def report_tables() -> dict[int, dict]:
    """The eight tables of the report by number, as they are printed, unrounded.

    Each has `caption`, `section`, `measured_on`, `columns`, `rows` and perhaps a `note` of ours.
    """
    return {table["number"]: table for table in _read("report_tables")["table"]}


def report() -> dict:
    """The report's figures by what they measure, unrounded, in seconds.

    Keys: `source`, `images_per_epoch`, `sequential` (`epoch_seconds`, and `layer_seconds` of an
    epoch), `openmp` and `mpi` (`threads` or `ranks`, `speedup`; None where the machine crashed),
    `cuda` (`layer_threads`, `layer_seconds`, `layer_speedups`, `network_…` alike, `measured_on`).
    What was computed from the tables, and not printed in them, is left to the lessons.
    """
    page, tables = _read("report_tables"), report_tables()
    names = [row[0].lower() for row in tables[4]["rows"]]
    ranks, mpi_speedup, _ = zip(*tables[2]["rows"], strict=True)
    counts, openmp, _ = zip(*tables[3]["rows"], strict=True)
    layers = [tables[number]["rows"][0] for number in (5, 6, 7)]
    threads, milliseconds, times, _ = zip(*layers, strict=True)
    layer_seconds = (round(row[1] / 1e3, 12) for row in tables[4]["rows"])
    whole = tables[8]["rows"][0]
    return {
        "source": page["source"],
        "images_per_epoch": page["images_per_epoch"],
        "sequential": {
            "layer_seconds": dict(zip(names, layer_seconds, strict=True)),
            "epoch_seconds": tables[1]["rows"][0][1],
        },
        "openmp": {
            "threads": list(counts),
            "speedup": [None if isinstance(times, str) else times for times in openmp],
            "note": f"{counts[-1]} threads: {openmp[-1].lower()}",
        },
        "mpi": {"ranks": list(ranks), "speedup": list(mpi_speedup)},
        "cuda": {
            "layer_threads": list(threads),
            "layer_seconds": [round(ms / 1e3, 12) for ms in milliseconds],
            "layer_speedups": list(times),
            "network_threads": whole[0],
            "network_seconds": round(whole[1] / 1e3, 12),
            "network_speedup": whole[2],
            "measured_on": tables[8]["measured_on"],
        },
    }


def _read(name: str) -> dict:
    """The file of the tables, or that of the listings."""
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
    grid: tuple[int, ...]
    block: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return f"Section {self.section}: “{self.says}”\n{self.text}"


def report_listings() -> dict[str, Listing]:
    """Seven kernels of the report by name, as they are printed, with their faults."""
    page = _read("report_listings")
    del page["source"]
    for row in page.values():
        row |= {"grid": tuple(row["grid"]), "block": tuple(row["block"])}
    return {name: Listing(name, **row) for name, row in page.items()}
