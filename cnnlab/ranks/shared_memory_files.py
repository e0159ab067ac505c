"""The files in memory through which MPI's ranks share it, which a rank that is killed leaves.

Each takes a megabyte a rank, and a container may have 64 in all. Only Linux has such files.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

NAMES = "/dev/shm/mpich_shm_", "/dev/shm/sm_segment."  # MPICH's, and Open MPI's


def mapped_by(pids: Iterable[int]) -> set[str]:
    """Those that processes have in use, among them some that are removed already."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just gone
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                file = line.split(maxsplit=5)[-1]
                if file.startswith(NAMES):
                    found.add(file.removesuffix(" (deleted)"))
    return found


def remove(files: Iterable[str]) -> None:
    """Remove files; those that use them keep what they have of them."""
    for file in files:
        with contextlib.suppress(OSError):  # another rank was first
            Path(file).unlink()
