"""Reports of `bench`, kept as files, one for each machine."""

import json
import re
from pathlib import Path

from cnnlab import cuda

MEASUREMENTS = Path(__file__).resolve().parents[2] / "data" / "measurements"


def keep(report: dict, folder: Path) -> Path:
    """Keep a report of `bench.run` as bench-<processor>.json in a folder; return the file.

    The folder is made where it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hardware = str(report["machine"]["cpu"])
    if cuda.gpu()[0]:
        hardware += f" {cuda.where()}"
    hardware = re.sub(r"\W+", "-", hardware.lower()).strip("-")
    file = folder / f"bench-{hardware}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return file


def recorded(folder: Path = MEASUREMENTS) -> list[dict]:
    """All rows of `results` that `keep` has kept in a folder; none where there is no folder."""
    files = sorted(folder.glob("bench-*.json"))
    return [row for file in files for row in json.loads(file.read_text("utf-8"))["results"]]
