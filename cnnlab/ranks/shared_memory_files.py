"""The files in /dev/shm through which MPI's ranks share memory; a killed rank leaves its own.

Each holds a megabyte per rank, and a container may have 64 MB in all. Only Linux has them.
"""

import contextlib
import glob
import os
import time
from collections.abc import Iterable
from pathlib import Path

NAMES = "/dev/shm/mpich_shm_", "/dev/shm/sm_segment."  # MPICH's, and Open MPI's
YOUNG = 60.0  # seconds in which the ranks of a job that is starting map a new file


def mapped_by(pids: Iterable[int]) -> set[str]:
    """The files that processes have mapped, including any that are already removed."""
    result = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has just ended
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                file = line.split(maxsplit=5)[-1]
                if file.startswith(NAMES):
                    result.add(file.removesuffix(" (deleted)"))
    return result


def remove(files: Iterable[str]) -> None:
    """Remove files; processes that have them mapped keep their memory."""
    for file in files:
        with contextlib.suppress(OSError):  # another rank was first
            Path(file).unlink()


def remove_abandoned() -> None:
    """Remove this user's files that killed jobs have left: old ones that no process has mapped."""
    files = {file for start in NAMES for file in glob.glob(f"{start}*") if is_old_and_mine(file)}
    if files:  # to look through all processes is slow
        remove(files - mapped_by(int(entry) for entry in os.listdir("/proc") if entry.isdigit()))


def is_old_and_mine(file: str) -> bool:
    """Whether a file is this user's and was last written more than YOUNG seconds ago."""
    try:
        about = os.stat(file)
    except FileNotFoundError:  # its job has just ended
        return False
    return about.st_uid == os.getuid() and time.time() - about.st_mtime > YOUNG
