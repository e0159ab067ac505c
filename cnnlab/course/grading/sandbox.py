"""Processes that run what nobody has read: without a network, without files, within limits.

Where the system allows it (Linux, by its namespaces), the process sees no other process, no
network, and of the files only Python, the system's programs and a cnnlab without answers. Elsewhere
its limits hold, and `walls()` says what does not.
"""

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cnnlab.course.grading.values import Broken
from cnnlab.course.grading.wire import Peer
from cnnlab.kernels import KERNELS
from cnnlab.ranks import cluster

PACKAGE = Path(__file__).resolve().parents[2]
INSIDE = "cnnlab.course.grading.inside"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")
# Of the arguments, the first is the new root, the second the folder of the package, the third the
# folder to work in, the fourth one to hide, then come folders to show, "--", and the program.
WALLS = """
set -e
root=$1 package=$2 work=$3 hidden=$4; shift 4
mount -t tmpfs -o size=512m tmpfs "$root"
while [ "$1" != -- ]; do
  if [ -L "$1" ]; then mkdir -p "$root$(dirname "$1")"; cp -P "$1" "$root$1"
  else mkdir -p "$root$1"; mount -o bind,ro "$1" "$root$1"; fi
  shift
done
shift
if [ -d "$root$hidden" ]; then mount -t tmpfs tmpfs "$root$hidden"; fi
mkdir -p "$root/proc" "$root/tmp" "$root/dev/shm" "$root/cnnlab-course" "$root/cnnlab-work"
mount -t proc proc "$root/proc"
for name in null zero full random urandom; do
  : > "$root/dev/$name"; mount -o bind "/dev/$name" "$root/dev/$name"
done
mount -o bind,ro "$package" "$root/cnnlab-course"
mount -o bind "$work" "$root/cnnlab-work"
if command -v ip >/dev/null; then ip link set lo up; fi
cd "$root"
exec chroot . setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \\
  sh -c 'cd /cnnlab-work && exec "$@"' sh "$@"
"""
TOOLS = "unshare", "setsid", "mount", "chroot", "setpriv"
SPACES = ("--user", "--map-root-user", "--mount", "--net", "--ipc", "--pid", "--fork")
KEPT = ("LANG", "LC_ALL", "PATH")  # of the environment: it holds secrets, too
SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "4",
    "CNNLAB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONUTF8": "1",
}


@dataclass(frozen=True)
class Limits:
    """What an answer may take: seconds by the clock, of a core, bytes of memory and of output."""

    wall: float = 120
    cpu: int = 120
    memory: int = 4 << 30
    output: int = 16 << 20
    processes: int = 96  # and threads: 4 of Numba's in each of 5 ranks, and what starts them


class Ended(BaseException):
    """The process of an answer was ended, or has ended itself; no `except Exception` hides it."""


@functools.cache
def walls() -> str:
    """What of the walls is missing on this system, in words; "" if nothing."""
    tools = [name for name in TOOLS if not shutil.which(name)]
    if tools:
        return f"no {tools[0]}: answers can see files, processes and the network"
    with tempfile.TemporaryDirectory(prefix="cnnlab-grade-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        command = behind_walls([sys.executable, "-c", "pass"], PACKAGE.parent, work)
        done = subprocess.run(command, capture_output=True, text=True, env=environment(True))
    if not done.returncode:
        return ""
    said = done.stderr.strip().partition("\n")[0]
    return f"no namespaces ({said}): answers can see files, processes and the network"


def behind_walls(command: list[str], package: Path, work: Path) -> list[str]:
    """The command that runs a command in namespaces of its own."""
    root = work.with_name(f"{work.name}-root")  # what is mounted there, nobody else sees
    root.mkdir(exist_ok=True)
    shown = [path for path in SYSTEM if os.path.lexists(path)]
    for prefix in {sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix)}:
        if not prefix.startswith("/usr/") and prefix != "/usr":
            shown.append(prefix)
    kill = "--kill-child=SIGKILL"
    places = map(str, (root, package, work, PACKAGE))
    inner = ["sh", "-c", WALLS, "walls", *places, *shown, "--"]
    # In a session of its own: else process 0, its group, would be that of `unshare`, too.
    return ["unshare", *SPACES, kill, "setsid", *inner, *command]


def environment(walled: bool, package: Path = PACKAGE.parent, work: str = "/cnnlab-work") -> dict:
    """The environment of an answer's process."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    places = {"HOME": work, "TMPDIR": "/tmp" if walled else work}
    return kept | SETTINGS | places | {"PYTHONPATH": "/cnnlab-course" if walled else str(package)}


@contextlib.contextmanager
def packages() -> Iterator[tuple[Path, Path]]:
    """Folders with a cnnlab: without answers and strategies, and one with the strategies.

    The second is for code that was read before it runs, see `vet`; nobody has the exercises.
    """
    strategies = {each for name in KERNELS for each in (name, f"{name}.py")}
    with tempfile.TemporaryDirectory(prefix="cnnlab-course-") as folder:
        for name, hidden in (("bare", strategies), ("whole", set())):
            copied(Path(folder, name, "cnnlab"), hidden)
        yield Path(folder, "bare"), Path(folder, "whole")


def copied(folder: Path, hidden: set[str]) -> None:
    """Copy the package, but for its answers, for some of its kernels, and for the course's own."""

    def left_out(of: str, names: list[str]) -> set[str]:
        inner = Path(of).relative_to(PACKAGE).parts
        if inner == ("course",):
            return {*names} - {"grading"}
        return {"__pycache__"} | (hidden if inner == ("kernels",) else {"exercises"})

    shutil.copytree(PACKAGE, folder, ignore=left_out)
    (folder / "course" / "__init__.py").touch()


class Sandbox:
    """The process of one answer: `peer` speaks to it. Use it in a `with` block."""

    def __init__(self, package: Path, limits: Limits):
        self.package, self.limits = package, limits
        self.folder = tempfile.TemporaryDirectory(
            prefix="cnnlab-grade-", ignore_cleanup_errors=True
        )
        self.work = Path(self.folder.name, "work")
        self.work.mkdir()
        ours, its = socket.socketpair()
        bounds = limits.cpu, limits.memory, limits.output, limits.processes
        command = [sys.executable, "-m", INSIDE, str(its.fileno()), *map(str, bounds)]
        walled = not walls()
        known = environment(walled, package, "/cnnlab-work" if walled else str(self.work))
        self.mark = "" if walled else uuid.uuid4().hex
        known |= {cluster.MARK: self.mark} if self.mark else {}
        if walled:
            command = behind_walls(command, package, self.work)
        with its, open(self.work / "output", "wb") as said:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.work,
                pass_fds=[its.fileno()], start_new_session=True, env=known,
            )  # fmt: skip
        self.peer = Peer(ours, shares=True)
        self.peer.deadline = time.monotonic() + limits.wall
        self.peer.tick, self.spent = self.watch, ""

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def call(self, what: str, *arguments, options: dict | None = None, **more):
        """What the answer makes of something; raises Ended if its process is no more.

        Raises `wire.Raised` with what the answer raised.
        """
        try:
            return self.peer.call(what, 0, arguments, options or {}, **more)
        except Broken as problem:
            raise Ended(self.why(str(problem))) from None

    def why(self, problem: str) -> str:
        """Why there is no answer."""
        if self.spent:
            return f"ended: {self.spent}"
        if time.monotonic() >= self.peer.deadline:
            return f"not done after {self.limits.wall:g} seconds"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        status = self.process.poll()
        if status is None:
            return f"gave no result: {problem}"
        status = status - 128 if status > 128 else -status if status < 0 else 0
        if status == signal.SIGKILL:
            return "ended: it took too much time of a core, or too much memory"
        return f"ended by {signal.Signals(status).name}" if status else "ended without a result"

    def watch(self) -> None:
        """End it, if all its processes together have too much memory."""
        import psutil

        total = 0
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += each.memory_info().rss
        if total > self.limits.memory:
            self.spent = "too much memory"
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.mark:  # behind walls, all end with the first
            cluster.end(self.mark)
        self.peer.connection.close()
        self.folder.cleanup()
