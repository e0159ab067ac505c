"""Compile, once and in three processes, what most tests and lessons call: `python -m tests.warm`.

Else each worker of pytest, and each rank, would compile it for itself, as all begin together: the
kernels, and the tests, whose assertions pytest rewrites.
"""

import itertools
import subprocess
import sys

import numpy as np
from mpi4py import MPI

from cnnlab.check import inputs
from cnnlab.check.operation import stride_of
from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import CONTRACT, KERNELS, allreduce
from cnnlab.kernels.workers import Workers
from cnnlab.network import Network
from cnnlab.ranks.virtual import World
from cnnlab.runtime.files import kernel_folder
from cnnlab.training import Replica, Sgd, train

PARTS = {"one core": ("loops", "vector"), "threads": ("threads",)}


def compile_part(part: str) -> None:
    """Call every operation of some strategies, and train with them, alone and on ranks."""
    data = load("digits", 100, 20)
    for name in PARTS[part]:
        for operation in CONTRACT:
            case = inputs.CASES[2].suited(operation)
            arrays = inputs.draw(operation, case).values()
            KERNELS[name].kernel(operation)(*arrays, **stride_of(operation, case))
        train(data, name, progress=False)
    if part == "one core":
        World(2).run(lambda comm: train(data, method=DataParallel(comm), progress=False))
        batches = data.train_images, data.train_labels, 20, Sgd(0.4)
        replica = Replica(KERNELS["vector"], Network().parameters(), *batches)
        loops = [replica.loop(), DataParallel(MPI.COMM_SELF).in_memory(replica)]
        if allreduce.reachable():
            loops.append(replica.loop(Workers(0, 1, messages=allreduce.messages(MPI.COMM_SELF))))
        for n, loop in itertools.product((20, 1), loops):  # for few images there is another kernel
            loop(np.arange(n))


if __name__ == "__main__":
    done = kernel_folder() / f"warm-{sys.implementation.cache_tag}"
    if sys.argv[1:]:
        compile_part(sys.argv[1])
    elif not done.exists():  # with these sources
        tests = ["pytest", "--collect-only", "-qq", "tests"]
        commands = [*(["tests.warm", part] for part in PARTS), tests]
        running = [
            subprocess.Popen([sys.executable, "-m", *c], stdout=subprocess.DEVNULL)
            for c in commands
        ]
        if not any([process.wait() for process in running]):
            done.touch()
