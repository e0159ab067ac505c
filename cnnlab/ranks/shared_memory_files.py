"""The files in /dev/shm through which MPI's ranks share memory; a killed rank leaves its own.

Each holds a megabyte per rank, and a container may have 64 MB in all, or less. Only Linux has them.
"""

import contextlib
import glob
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

FOLDER, SHARE = "/dev/shm", 1_100_000  # bytes of a rank
NAMES = f"{FOLDER}/mpich_shm_", f"{FOLDER}/sm_segment."  # MPICH's, and Open MPI's
YOUNG = 2.0  # seconds in which the ranks of a job that is starting map a new file


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


def make_room(n_ranks: int, first: bool = True) -> None:
    """Remove what killed jobs have left; RuntimeError if ranks on this machine then have no room.

    MPICH itself ends with a bus error there, and does not say why. Ranks other than the `first` ask
    how much there is in all, as others may have taken theirs.
    """
    remove_abandoned()
    if n_ranks == 1 or not os.path.isdir(FOLDER):
        return
    room, needed = shutil.disk_usage(FOLDER), SHARE * n_ranks
    if (got := room.free if first else room.total) < needed:
        text = f"{FOLDER}: expected {needed / 1e6:.1f} MB for {n_ranks} ranks"
        raise RuntimeError(f"{text}, got {got / 1e6:.1f} MB; in a container, add --shm-size=1g")


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
