"""Checkpoints: a training as one file, written whole or not at all."""

import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cnnlab.network import Network, Parameters


def save(path: str | Path, params: Parameters, history: list[dict], plan: dict) -> None:
    """Write the parameters, one row of history for each epoch done, and the plan (batch, seed, …).

    The file is replaced only once the new one is complete. Raises OSError where it cannot be.
    """
    path = Path(path)
    about = {"network": asdict(params.network), "history": history, "plan": plan}
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, flat=params.flat, about=np.array(json.dumps(about)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def load(path: str | Path) -> tuple[Parameters, list[dict], dict]:
    """The parameters, history and plan that `save` wrote; ValueError if it is another file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            flat, about = file["flat"], json.loads(str(file["about"]))
        params = Parameters(Network(**about["network"]), flat.dtype)
        params.flat[:] = flat
        return params, about["history"], about["plan"]
    except FileNotFoundError:
        raise ValueError(f"resume: there is no file {path}") from None
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"resume: {path} should be a checkpoint of a training, but cannot be read: {error}"
        ) from None
