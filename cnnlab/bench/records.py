"""Reports of `bench` as files, one for each machine."""

import json
import re
from pathlib import Path

from cnnlab import cuda
from cnnlab.runtime.files import replacing

MEASUREMENTS = Path(__file__).resolve().parents[2] / "data" / "measurements"


def keep(report: dict, folder: Path) -> Path:
    """Write a report of `bench.run` to bench-<processor>.json in a folder; return the path.

    The folder is created if it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hardware = str(report["machine"]["cpu"])
    if cuda.gpu()[0]:
        hardware += f" {cuda.where()}"
    hardware = re.sub(r"\W+", "-", hardware.lower()).strip("-")
    path = folder / f"bench-{hardware}.json"
    with replacing(path) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    return path


def recorded(folder: Path = MEASUREMENTS) -> list[dict]:
    """The rows of `results` in all reports of a folder; empty if there is no folder."""
    files = sorted(folder.glob("bench-*.json"))
    return [row for file in files for row in json.loads(file.read_text("utf-8"))["results"]]
