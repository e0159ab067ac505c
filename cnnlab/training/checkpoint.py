"""Checkpoints: a training as one file, written whole or not at all, and read with care."""

import json
import math
import os
import zipfile
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cnnlab.network import Network, Parameters
from cnnlab.runtime.files import replacing

ROW = {"epoch", "loss", "test_accuracy", "seconds", "images_per_second"}  # of the history
STATE = "optimizer "  # begins the names of the optimiser's arrays
UNREADABLE = (
    *(OSError, EOFError, KeyError, TypeError, ValueError, AttributeError, RuntimeError),
    MemoryError,
    zipfile.BadZipFile,
)


class Checkpoint(NamedTuple):
    """A training after some epochs: arrays of optimiser and method, and a row for each epoch."""

    params: Parameters
    state: dict[str, np.ndarray]
    history: list[dict]
    plan: dict


def save(path: str | Path, done: Checkpoint) -> None:
    """Write a checkpoint; the file is replaced only once the new one is complete.

    Raises OSError where it cannot be.
    """
    network = done.params.network.description()
    about = {"network": network, "history": done.history, "plan": done.plan}
    arrays = {STATE + name: array for name, array in done.state.items()}
    with replacing(path, one_writer=True) as file:
        np.savez(file, flat=done.params.flat, about=np.array(json.dumps(about)), **arrays)


def load(path: str | Path) -> Checkpoint:
    """The checkpoint that `save` wrote; ValueError that says what is wrong with any other file.

    All arrays hold finite numbers, and no more is read than the file is long.
    """
    try:
        with np.load(path) as file:
            if sum(member.file_size for member in file.zip.infolist()) > os.path.getsize(path):
                raise EOFError("expected arrays as long as the file, got longer ones")
            about = json.loads(str(array(file, "about", "U", ())))
            history, plan = check_history(about["history"]), dict(about["plan"])
            network = Network.from_description(about["network"])
            n = sum(map(prod, network.parameter_shapes.values()))
            params = Parameters(network, flat=array(file, "flat", "f", (n,)))
            state = {
                name.removeprefix(STATE): array(file, name, "f")
                for name in file.files
                if name.startswith(STATE)
            }
    except FileNotFoundError:
        raise ValueError(f"resume: expected a file, there is no {path}") from None
    except UNREADABLE as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ValueError(
            f"resume: expected a checkpoint of a training, got {path}: {what}"
        ) from None
    return Checkpoint(params, state, history, plan)


def array(file: np.lib.npyio.NpzFile, name: str, kind: str, shape: tuple | None = None):
    """An array of that kind and shape (None: any) in a file; TypeError or ValueError for others."""
    result = file[name]
    if result.dtype.kind != kind or (shape is not None and result.shape != shape):
        got = f"{result.dtype} of {result.shape}"
        raise TypeError(f"{name}: expected {kind!r} of shape {shape}, got {got}")
    if kind == "f" and not np.isfinite(result).all():
        raise ValueError(f"{name}: expected finite numbers, {(~np.isfinite(result)).sum()} are not")
    return result


def check_history(history) -> list[dict]:
    """The history, if it has a row of finite numbers for each epoch; else TypeError."""
    for epoch, row in enumerate(history, 1):
        if not (ROW <= row.keys() and row["epoch"] == epoch):
            raise TypeError(
                f"history: expected {', '.join(sorted(ROW))} of epoch {epoch}, got {row}"
            )
        if not all(math.isfinite(row[name]) for name in ROW):
            raise TypeError(f"history: expected finite numbers in epoch {epoch}, got {row}")
    return list(history)


def resume(path: str | Path, here: Checkpoint, epochs: int) -> list[dict]:
    """Bring parameters and optimiser of a training to where a checkpoint left them; its history.

    Nothing is changed unless network, plan, dtypes and shapes are those of `here`, and no more than
    `epochs` are done; else ValueError.
    """
    there = load(path)
    plans = {
        k: (here.plan.get(k, "none"), there.plan.get(k, "none")) for k in here.plan | there.plan
    }
    different = {name: both for name, both in plans.items() if both[0] != both[1]}
    if there.params.network != here.params.network:
        different["network"] = here.params.network, there.params.network
    elif there.params.flat.dtype != here.params.flat.dtype:
        different["dtype"] = here.params.flat.dtype, there.params.flat.dtype
    shapes = [{name: a.shape for name, a in group.state.items()} for group in (here, there)]
    if shapes[0] != shapes[1]:
        different["an optimizer of"] = shapes
    for name, (ours, own) in different.items():
        raise ValueError(f"resume: expected {name} {ours}, {path} was trained with {own}")
    if len(there.history) > epochs:
        raise ValueError(
            f"resume: expected at most {epochs} epochs, {path} has done {len(there.history)}"
        )
    here.params.flat[:] = there.params.flat
    for name, state in there.state.items():
        here.state[name][...] = state
    return there.history
