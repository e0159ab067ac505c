"""Threads that share parameters and lock nothing: what gets lost, and what it takes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.kernels.variants.hogwild import hogwild
from cnnlab.network import Network
from cnnlab.runtime import thread_pool
from cnnlab.training import Replica, Sgd, accuracy


class Samples:
    """Least squares on samples that name few of the parameters, or all: called, threads step.

    A sample names `n_each` of `n_parameters`: drawn, and sparse, or all of them, if there are no
    more. Called with a number of threads, all steps begin anew, with one for each sample.
    """

    def __init__(self, n_parameters: int, n_each: int = 16, n_samples: int = 200_000):
        rng = np.random.default_rng(0)
        dense, size = n_parameters == n_each, (n_samples, n_each)
        drawn = np.arange(n_each) if dense else rng.integers(0, n_parameters, size)
        self.places = np.ascontiguousarray(np.broadcast_to(drawn, size))
        self.x = rng.standard_normal(size, np.float32)
        self.right = rng.standard_normal(n_parameters, np.float32)
        self.y = np.einsum("mk,mk->m", self.right[self.places], self.x)
        self.w, self.steps = np.zeros_like(self.right), np.zeros(n_parameters, np.int64)

    def __call__(self, n_threads: int) -> None:
        self.w[:] = self.steps[:] = 0
        rate = np.float32(0.5 / self.x.shape[1])
        with thread_pool.threads(n_threads):
            hogwild(self.places, self.x, self.y, self.w, self.steps, rate, n_threads)

    @property
    def lost(self) -> float:
        """The share of additions that the latest call has lost."""
        return 1 - self.steps.sum() / self.places.size

    @property
    def error(self) -> float:
        """How far the parameters are from the right ones, over the length of these."""
        return float(np.linalg.norm(self.w - self.right) / np.linalg.norm(self.right))


def unlocked(
    data, n_threads: int, *, shared: bool = True, batch: int = 8, rate: float = 0.1, seed: int = 0
):
    """Threads that each take their share of an epoch on the course's network: a call, and a test.

    All step in one array of parameters, which nobody locks, or each in its own. The call trains
    from the start; the test says which share of the test images the first thread's get right.
    """
    network, vector = Network(), KERNELS["vector"]
    start = network.parameters(seed)
    one = start.copy()
    params = [one if shared else start.copy() for _ in range(n_threads)]
    held = data.train_images, data.train_labels, batch
    loops = [Replica(vector, its, *held, Sgd(rate)).loop() for its in params]
    order = np.random.default_rng(seed).permutation(len(data.train_labels))
    parts = [np.ascontiguousarray(order[k::n_threads]) for k in range(n_threads)]
    pool = ThreadPoolExecutor(n_threads)

    def train() -> None:
        for its in params:
            its.flat[:] = start.flat
        list(pool.map(lambda loop, part: loop(part), loops, parts))

    def test() -> float:
        return accuracy("vector", params[0], data.test_images, data.test_labels)

    return train, test
