"""Speedups that lessons record while they run, for the table at the end of `make course`."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from cnnlab.bench.measure import Timing, speedup

Table = tuple[str, list[tuple[str, str, str]]]


def record(name: str, timings: Mapping[str, Timing], base: str) -> None:
    """Keep measured times for the table of speedups at the end of `make course`.

    Parameters
    ----------
    name : what was measured, the heading of its table, such as "One epoch, batch 64"
    timings : for each strategy its times, taken together by `cnnlab.bench.measure.compare`
    base : the strategy that the others are compared with

    Writes one JSON file to the folder in the environment variable CNNLAB_RESULTS, and nothing
    where that is not set. Raises ValueError if `base` is not among the timings, or if they have
    different numbers of samples.
    """
    if base not in timings:
        raise ValueError(f"base: expected one of {', '.join(timings)}, got {base!r}")
    for timing in timings.values():
        speedup(timings[base], timing)  # raises here, in the lesson, rather than after all of them
    if folder := os.environ.get("CNNLAB_RESULTS"):
        path = Path(folder) / (re.sub(r"\W+", "_", name.lower()).strip("_") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        samples = {strategy: timing.samples for strategy, timing in timings.items()}
        content = {"name": name, "base": base, "seconds": samples}
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def recorded(folder: Path) -> list[Table]:
    """Return the recorded tables: a heading and rows (strategy, time, speedup), one a file."""
    tables = []
    for file in sorted(folder.rglob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        timings = {name: Timing(name, tuple(s)) for name, s in content["seconds"].items()}
        base = timings[content["base"]]
        rows = [
            (name, str(timing), "base" if timing is base else str(speedup(base, timing)))
            for name, timing in timings.items()
        ]
        tables.append((content["name"], rows))
    return tables


def table_text(table: Table) -> str:
    """Return one recorded table as plain text, its columns aligned."""
    heading, rows = table
    rows = [("strategy", "median time (95 % interval)", "speedup (95 % interval)"), *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
    return "\n  ".join([heading, *(line.rstrip() for line in lines)])
