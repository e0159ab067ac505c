"""Networks that have nothing in common, one a core: what no parallel program can pass."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cnnlab.bench.contestants import Contestant
from cnnlab.training import Replica

N_STEPS = 128  # of each call: enough that starting the threads does not count


class OnTheirOwn:
    """Threads that each train a network of their own with `vector`, as long as `one` would alone.

    Called with their number. With perfect cores, any number takes as long as one; where it takes
    longer, cores share something, or somebody else uses them.
    """

    def __init__(self, one: Contestant, n_threads: int):
        self.threads, of = ThreadPoolExecutor(n_threads), one.replica
        held = of.images, of.labels, of.batch, of.optimizer
        self.loops = [
            Replica(of.strategy, of.params.copy(), *held).loop() for _ in range(n_threads)
        ]
        self.order = np.resize(one.order, N_STEPS * one.batch)

    def __call__(self, n_threads: int) -> None:
        for _ in self.threads.map(lambda loop: loop(self.order), self.loops[:n_threads]):
            pass
