"""The journal of a search: what was asked and told, a JSON line each, so that it can go on."""

import json
import math
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cnnlab.runtime.files import replacing
from cnnlab.training.search.protocol import Search, Trial
from cnnlab.training.search.trainer import Result, State


class Done(NamedTuple):
    """A trial that was told: its score and what else was reported."""

    trial: Trial
    score: float
    report: dict


class Journal:
    """A search that notes what it does; one that was killed goes on where it was.

    A file that is there already is read: the search, made anew, is asked and told what it says, and
    comes to where it was. Trials that were handed out and not told are handed out once more. A line
    counts once its end is there; a state is written whole or not at all, and before the line that
    tells of it. `about` says what the trials are trained on; a journal about anything else is
    refused with a ValueError, as is one of another search. One process at a time may
    write to it. Without a `path` nothing outlives the process.
    """

    def __init__(self, search: Search, path: str | Path | None = None, about: dict | None = None):
        self.search, self.path = search, Path(path) if path else None
        self.done: list[Done] = []
        self.out: dict[int, Trial] = {}  # handed out, and not told
        self.again: list[Trial] = []  # of these, the ones whose results a kill has lost
        self.states: dict[int, State] = {}
        self.file = None
        if self.path:
            self.about = {"about": about or {}}
            self.open()

    def ask(self) -> Trial | None:
        """The next trial, noted; first those that were lost."""
        if self.again:
            return self.again.pop(0)
        trial = self.search.ask()
        if trial is not None:
            self.out[trial.number] = trial
            self.note({"ask": trial._asdict()})
        return trial

    def tell(self, trial: Trial, result: Result) -> None:
        """Note a result, then tell the search; its state is kept if others may go on from it."""
        score = finite(result.score)
        if self.search.keeps:
            self.keep(trial.number, result.state)
        self.note({"tell": trial.number, "score": score, "report": result.report})
        self.told(trial.number, score, result.report)

    def state(self, trial: Trial) -> State | None:
        """The state that a trial goes on from; None where it begins anew."""
        if trial.parent is None or not self.path:
            return self.states.get(trial.parent)
        path = self.state_path(trial.parent)
        try:
            with np.load(path) as file:
                return dict(file)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: expected the state of a trial: {error}") from None

    def told(self, number: int, score: float, report: dict) -> None:
        """Tell the search, and remember."""
        trial = self.out.pop(number)
        self.search.tell(trial, score)
        self.done.append(Done(trial, score, report))

    def state_path(self, number: int) -> Path:
        """Where the state of a trial lies, in a folder beside the journal."""
        return self.path.with_suffix(".states") / f"{number}.npz"

    def keep(self, number: int, state: State) -> None:
        """Keep a state for those that go on from it."""
        if not self.path:
            self.states[number] = state
            return
        path = self.state_path(number)
        path.parent.mkdir(exist_ok=True)
        with replacing(path, one_writer=True) as file:
            np.savez(file, **state)

    def note(self, event: dict) -> None:
        """Write a line; it is on the disk when this returns."""
        if self.file:
            self.file.write(json.dumps(event).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self.file:
            self.file.close()

    def open(self) -> None:
        """Read what the file says, cut off what was half written, and go on from there."""
        text = self.path.read_bytes() if self.path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        for n, line in enumerate(whole.splitlines(), 1):
            try:
                self.replay(n, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path}, line {n}: {error}") from None
        self.again = list(self.out.values())
        self.file = open(self.path, "ab")
        self.file.truncate(len(whole))
        if not whole:
            self.note(self.about)

    def replay(self, n: int, event: dict) -> None:
        """Let the search do once more what a line says; ValueError if it would do otherwise."""
        if n == 1:
            expected(self.about, event)
        elif "ask" in event:
            trial = self.search.ask()
            expected(json.loads(json.dumps(trial and trial._asdict())), event["ask"])
            self.out[trial.number] = trial
        else:
            self.told(event["tell"], finite(event["score"]), event["report"])


def expected(ours, its) -> None:
    """ValueError unless both are the same."""
    if ours != its:
        raise ValueError(f"expected {ours}, got {its}: it is the journal of another search")


def finite(score: float) -> float:
    """The score as a float, if it is finite; else ValueError."""
    if not math.isfinite(score):
        raise ValueError(f"score: expected a finite number, got {score}")
    return float(score)
