"""Files that are written whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path, *, one_writer: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` once the `with` block has succeeded.

    Until then it lies beside `path` under another name; if the block raises, it is removed and
    `path` stays as it was. With `one_writer` that name is always the same, so that killed processes
    leave at most one such file. Raises OSError where it cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}-{'partial' if one_writer else uuid.uuid4().hex}")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(argument: str, path: str | Path) -> None:
    """Raise ValueError unless `replacing` can write to `path`; a file there stays as it is."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{argument}: expected a file in a folder that exists, got {path}")
    try:
        with open(path.with_name(f".{path.name}-{uuid.uuid4().hex}"), "xb") as file:
            Path(file.name).unlink()
    except OSError as error:
        raise ValueError(f"{argument}: expected a writable file, got {path}: {error}") from None
