"""Files that are written whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` once the `with` block has succeeded.

    Until then it lies beside `path` under another name; if the block raises, it is removed and
    `path` stays as it was. Raises OSError where it cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        with open(partial, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
