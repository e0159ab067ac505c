"""Which shared-memory files a test makes: another program may start ranks at the same time."""

import contextlib
import glob
import os
import threading
import uuid

import psutil

from cnnlab.ranks import shared_memory_files

MARK = "CNNLAB_TEST"  # in the environment of whatever a test starts


def files() -> set[str]:
    """The shared-memory files that there are."""
    return {file for start in shared_memory_files.NAMES for file in glob.glob(f"{start}*")}


@contextlib.contextmanager
def noting_segments():
    """Yield a set that gets the files which programs started in this block have mapped."""
    old, ours, others, done = files(), set(), set(), threading.Event()
    name = os.environ[MARK] = uuid.uuid4().hex

    def look():
        while not done.wait(0.01):
            if new := files() - old - ours - others:
                for process in psutil.process_iter():
                    with contextlib.suppress(psutil.Error):  # it has just ended
                        if mapped := new & shared_memory_files.mapped_by([process.pid]):
                            mine = process.environ().get(MARK) == name
                            (ours if mine else others).update(mapped)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield ours
    finally:
        done.set()
        looking.join()
        del os.environ[MARK]
