"""Files that are written whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` once the block has ended well.

    Until then it lies beside it under another name, and is removed if the block raises. Raises
    OSError where it cannot be written.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
