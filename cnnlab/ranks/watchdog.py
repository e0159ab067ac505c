"""No process is left behind: find and end the processes of a cluster, also after a killed kernel.

Every process of a cluster carries the cluster's name in its environment. As a program of its own,
`python -m cnnlab.ranks.watchdog PID NAME` waits until process PID has ended, then ends the cluster.
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
    """The running processes of that cluster, other than this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == name:
                found.append(process)
        except psutil.Error:  # other people's, or just gone
            continue
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def end(name: str, shared: Iterable[str] = ()) -> None:
    """Kill what is left of a cluster, wait until all of it has ended, and remove shared memory.

    `shared` names that of ranks which may have ended before.
    """
    until, files = time.monotonic() + 15, set(shared)
    while (left := members(name)) and time.monotonic() < until:
        files |= shared_memory_files.mapped_by(process.pid for process in left)
        for process in left:  # one of them may have started another meanwhile
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    shared_memory_files.remove(files)


def watch(name: str) -> subprocess.Popen:
    """Start a process that ends the cluster once this process has ended; kill it to call it off."""
    return subprocess.Popen(
        [sys.executable, "-m", "cnnlab.ranks.watchdog", str(os.getpid()), name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what interrupts the notebook leaves it alone
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


if __name__ == "__main__":
    watched, cluster_name = int(sys.argv[1]), sys.argv[2]
    try:
        psutil.Process(watched).wait()
    except psutil.NoSuchProcess:
        pass
    end(cluster_name)
