"""Reports for programs: of `train`, and of `bench` as files, one for each machine."""

import json
import re
from pathlib import Path

from cnnlab import cuda
from cnnlab.bench import machine
from cnnlab.kernels import Strategy
from cnnlab.runtime.files import replacing
from cnnlab.training import Training

PACKAGE = Path(__file__).resolve().parents[1]
PACKED = PACKAGE / "data" / "measurements"  # there in a wheel of `make zip`
MEASUREMENTS = PACKED if PACKED.is_dir() else PACKAGE.parent / "data" / "measurements"


def keep(report: dict, folder: Path) -> Path:
    """Write a report of `bench.run` to bench-<processor>-<vectors>.json in a folder; the path.

    The folder is created if it does not exist. The same processor, told to use narrower vectors,
    has a report of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hardware = f"{report['machine']['cpu']} {vectors(report)}"
    if cuda.gpu()[0]:
        hardware += f" {cuda.where()}"
    hardware = re.sub(r"\W+", "-", hardware.lower()).strip("-")
    path = folder / f"bench-{hardware}.json"
    with replacing(path) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    return path


def vectors(report: dict) -> str:
    """The vectors of a report's machine, such as "AVX2"; "" where they are unknown."""
    return str(report["machine"]["simd"] or "").partition(",")[0]


def of_training(result: Training, strategy: Strategy, data, batch: int, plan: dict) -> dict:
    """A training as `train --json` tells it; `plan` adds what else was asked for."""
    seconds = sum(row["seconds"] for row in result.history) / len(result.history)
    return {
        "kernels": strategy.name,
        **plan,
        "data": data.name,
        "n_images": len(data.train_images),
        "batch": batch,
        "epochs": len(result.history),
        "seconds_per_epoch": seconds,
        "images_per_second": len(data.train_images) / seconds,
        "train_loss": result.history[-1]["loss"],
        "test_accuracy": result.history[-1]["test_accuracy"],
        "history": result.history,
        "machine": machine.describe(),
    }


def recorded(folder: Path = MEASUREMENTS) -> list[dict]:
    """The rows of `results` in all reports of a folder; empty if there is no folder."""
    files = sorted(folder.glob("bench-*.json"))
    return [row for file in files for row in json.loads(file.read_text("utf-8"))["results"]]
