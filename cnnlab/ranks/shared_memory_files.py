"""The files in /dev/shm through which MPI's ranks share memory; a killed rank leaves its own.

Each holds a megabyte per rank, and a container may have 64 MB in all. Only Linux has them.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

NAMES = "/dev/shm/mpich_shm_", "/dev/shm/sm_segment."  # MPICH's, and Open MPI's


def mapped_by(pids: Iterable[int]) -> set[str]:
    """The files that processes have mapped, including any that are already removed."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has just ended
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                file = line.split(maxsplit=5)[-1]
                if file.startswith(NAMES):
                    found.add(file.removesuffix(" (deleted)"))
    return found


def remove(files: Iterable[str]) -> None:
    """Remove files; processes that have them mapped keep their memory."""
    for file in files:
        with contextlib.suppress(OSError):  # another rank was first
            Path(file).unlink()
