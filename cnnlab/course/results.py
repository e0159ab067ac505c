"""Times that lessons record, for the tables of speedups at the end of `make course`."""

import json
import os
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from cnnlab.runtime import arguments
from cnnlab.runtime.arguments import one_of
from cnnlab.runtime.files import replacing

Table = tuple[str, list[list[str]]]


def record(name: str, timings: Mapping, base: str) -> None:
    """Keep measured times for a table of speedups at the end of `make course`.

    `name` is its heading, such as "One epoch, batch 64"; `timings` are those of each strategy, from
    one `cnnlab.measure.timing.compare`; `base` is the strategy that the others are compared with.
    A time that was taken on the emulator says so. Writes a JSON file to the folder in the
    environment variable CNNLAB_RESULTS; nothing if it is not set. Raises ValueError if `base` is
    not one of the timings, or if they have different numbers of samples.
    """
    from cnnlab.measure.timing import speedup  # not above: Numba would come before its pool

    one_of("base", base, timings)
    rows = []
    for strategy, timing in timings.items():
        world = ", on the emulator" * timing.emulated
        faster = str(speedup(timings[base], timing))
        rows.append([f"{strategy}{world}", str(timing), "base" if strategy == base else faster])
    if folder := os.environ.get("CNNLAB_RESULTS"):
        path = Path(folder) / (re.sub(r"\W+", "_", name.lower()).strip("_") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps([name, rows], indent=1).encode())


def recorded(folder: Path) -> list[Table]:
    """The tables recorded in a folder, each a heading and rows [strategy, time, speedup]."""
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.rglob("*.json"))]


def table_text(table: Table) -> str:
    """A recorded table as plain text."""
    heading, rows = table
    head = "strategy", "median time (95 % interval)", "speedup (95 % interval)"
    return f"{heading}\n{textwrap.indent(arguments.table([head, *rows]), '  ')}"
