"""Files that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` once the block has ended well.

    Until then it lies beside it, always under the same name, so that a killed process leaves at
    most one. It is removed if the block raises. Raises OSError where it cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def check_place(argument: str, path: str | Path) -> None:
    """Raise ValueError unless `replacing` can write to `path`; what is there stays as it is."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{argument}: expected a file in a folder that is there, got {path}")
    try:
        partial = path.with_name(f".{path.name}.partial")
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise ValueError(f"{argument}: expected a place to write, got {path}: {error}") from None
