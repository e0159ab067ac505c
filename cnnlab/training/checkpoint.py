"""Checkpoints: a training as one file, written whole or not at all."""

import json
import zipfile
from pathlib import Path

import numpy as np

from cnnlab.network import Network, Parameters
from cnnlab.runtime.files import replacing


def save(
    path: str | Path, params: Parameters, state: dict, history: list[dict], plan: dict
) -> None:
    """Write parameters, the arrays of the optimiser, a row of history for each epoch, and the plan.

    The file is replaced only once the new one is complete. Raises OSError where it cannot be.
    """
    about = {"network": params.network.description(), "history": history, "plan": plan}
    arrays = {f"optimizer {name}": array for name, array in state.items()}
    with replacing(path) as file:
        np.savez(file, flat=params.flat, about=np.array(json.dumps(about)), **arrays)


def load(path: str | Path) -> tuple[Parameters, dict, list[dict], dict]:
    """Parameters, arrays of the optimiser, history and plan from `save`; ValueError if it is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        flat = arrays.pop("flat")
        params = Parameters(Network.from_description(about["network"]), flat.dtype)
        params.flat[:] = flat
        state = {name.removeprefix("optimizer "): array for name, array in arrays.items()}
        return params, state, about["history"], about["plan"]
    except FileNotFoundError:
        raise ValueError(f"resume: there is no file {path}") from None
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"resume: {path} should be a checkpoint of a training, but cannot be read: {error}"
        ) from None


def resume(
    path: str | Path, params: Parameters, state: dict, plan: dict, epochs: int
) -> list[dict]:
    """Bring parameters and optimiser to where a checkpoint left them; return its history.

    Raises ValueError if it is of another training, or has done more than `epochs`.
    """
    saved, arrays, history, its_plan = load(path)
    different = {k: (v, its_plan.get(k)) for k, v in plan.items() if v != its_plan.get(k)}
    if saved.network != params.network:
        different["network"] = params.network, saved.network
    for name, (here, there) in different.items():
        raise ValueError(f"resume: {path} was trained with {name} {there}, not {here}")
    if len(history) > epochs:
        raise ValueError(f"resume: {path} has done {len(history)} epochs, more than {epochs}")
    params.flat[:] = saved.flat
    state.update(arrays)
    return history
