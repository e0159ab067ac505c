"""Find and end the processes of a cluster, even after the notebook that started it was killed.

Every process of a cluster has the cluster's name in its environment. The program
`python -m cnnlab.ranks.watchdog PID NAME` waits for process PID to end, then ends the cluster.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable

import psutil

from cnnlab.ranks import shared_memory_files

MARK = "CNNLAB_CLUSTER"


def members(name: str) -> list[psutil.Process]:
    """The running processes of a cluster, except this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.environ().get(MARK) != name:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:  # another user's, or just ended
            continue
    return found


def end(name: str, shared: Iterable[str] = ()) -> None:
    """Kill the processes of a cluster, wait until they have ended, and remove their shared memory.

    `shared` names the files of ranks that may have ended already.
    """
    deadline, files = time.monotonic() + 15, set(shared)
    while (left := members(name)) and time.monotonic() < deadline:
        files |= shared_memory_files.mapped_by(process.pid for process in left)
        for process in left:  # again and again: a process may start another meanwhile
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    shared_memory_files.remove(files)


def watch(name: str) -> subprocess.Popen:
    """Start a process that ends the cluster when this one ends; kill it to cancel."""
    return subprocess.Popen(
        [sys.executable, "-m", "cnnlab.ranks.watchdog", str(os.getpid()), name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt of the notebook does not reach it
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


if __name__ == "__main__":
    watched, cluster_name = int(sys.argv[1]), sys.argv[2]
    try:
        psutil.Process(watched).wait()
    except psutil.NoSuchProcess:
        pass
    end(cluster_name)
