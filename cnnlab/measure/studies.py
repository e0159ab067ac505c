"""Studies: experiments too long for a lesson, run once, kept with their machine, and replayed."""

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cnnlab.measure import machine
from cnnlab.measure.bench import MEASUREMENTS
from cnnlab.runtime.files import replacing

STUDY = "CNNLAB_STUDY"  # the environment variable with which studies are run, and not replayed


class Study(NamedTuple):
    """The results of a study by case, the machine that ran it, and the seconds that it took."""

    results: dict[tuple, object]
    machine: str
    seconds: float

    @property
    def processor(self) -> str:
        """The processor and its cores."""
        return self.machine.partition("\n")[0].removeprefix("processor").strip()

    @property
    def card(self) -> str:
        """The name of the GPU, or what stands there without one."""
        return self.machine.rpartition("GPU: ")[2].partition(",")[0]


def study(name: str, run: Callable, cases: Sequence[tuple], here: bool = True) -> Study:
    """The results of `run(*case)` for each case, replayed from data/measurements/study-NAME.json.

    With CNNLAB_STUDY=1 in the environment, or NAME, all cases are run here, and the file is
    written, unless this machine lacks what that needs and it is not `here`. Cases and results are
    what JSON holds: numbers, texts, lists. Raises ValueError where other cases were stored than
    those asked for.
    """
    path, asked = MEASUREMENTS / f"study-{name}.json", [list(case) for case in cases]
    if here and os.environ.get(STUDY) in ("1", name):
        start = time.perf_counter()
        kept = {"machine": machine.summary(), "cases": asked, "results": [run(*c) for c in cases]}
        kept["seconds"] = round(time.perf_counter() - start, 1)
        with replacing(path) as file:
            file.write((json.dumps(kept) + "\n").encode())
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["cases"] != asked:
        stored = f"the {len(kept['cases'])} cases of {path.name}"
        raise ValueError(f"cases: expected {stored}, got others; {STUDY}=1 runs and keeps them")
    results = dict(zip(map(tuple, asked), kept["results"], strict=True))
    return Study(results, kept["machine"], kept["seconds"])
