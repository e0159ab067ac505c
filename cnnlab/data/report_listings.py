"""Kernels in CUDA C of the report *Parallelizing Convolutional Neural Networks* (2024), quoted."""

import tomllib
from importlib import resources
from typing import NamedTuple


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
    file = resources.files("cnnlab.data").joinpath("report_listings.toml")
    page = tomllib.loads(file.read_text(encoding="utf-8"))
    page.pop("source")
    sizes = ("grid", "block")
    return {
        name: Listing(name, **row | {key: tuple(row[key]) for key in sizes})
        for name, row in page.items()
    }
