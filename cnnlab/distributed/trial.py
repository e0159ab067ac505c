"""Kernels that take virtual time by what they do: a run takes the same each time."""

import time
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cnnlab.distributed import METHODS
from cnnlab.distributed.data_parallel import partitioned
from cnnlab.kernels import find
from cnnlab.kernels.contract import CONTRACT, Strategy
from cnnlab.network import NETWORKS
from cnnlab.ranks import world
from cnnlab.ranks.virtual import World
from cnnlab.runtime.failures import few
from cnnlab.training import OPTIMIZERS, Method, Replica

RATE, CALL = 2e9, 2e-6  # operations a second, and seconds a call: about one core's


def modelled(name: str, arrays: Sequence, took: float = 0.0) -> float:
    """The seconds that a model charges for a kernel: CALL, and its operations over RATE."""
    n = work(name, arrays) if name in CONTRACT else max(map(np.size, arrays))
    return CALL + n / RATE


class Charged(Strategy):
    """A strategy on a virtual rank: it computes, and the rank's clock goes on by what it costs.

    `cost` is a function of a kernel's name, its arrays and the seconds that it took; `see` is shown
    the arrays. Nothing is fused, unless a `whole` step is to be charged for as one kernel.
    """

    def __init__(
        self,
        kernels: Strategy,
        comm,
        cost: Callable = modelled,
        see: Callable = lambda arrays: None,
        whole: bool = False,
    ):
        super().__init__(kernels.name, kernels.summary, kernels.dtype, kernels.module)
        self.comm, self.cost, self.see, self.whole = comm, cost, see, whole

    def charged(self, name: str, raw: Callable) -> Callable:
        """The function, charged for when it has been called."""

        def call(*arrays, **options):
            self.see(arrays)
            start = time.perf_counter()
            result = raw(*arrays, **options)
            took = time.perf_counter() - start
            self.comm.compute(self.cost(name, arrays, took))
            return result

        return call

    def kernel(self, name: str) -> Callable:
        return self.charged(name, super().kernel(name))

    def fused(self, name: str, network) -> Callable | None:
        """The fused step, charged for; no loops of many steps, which Python cannot divide."""
        raw = super().fused(name, network) if self.whole else None
        if raw is None or name != "loss_and_gradients":
            return None

        def step(params, images, labels, grads, chosen):
            n = len(labels) if chosen is None else len(chosen)
            return self.charged(name, lambda n: raw(params, images, labels, grads, chosen))(n)

        return step


def work(name: str, arrays: tuple[np.ndarray, ...]) -> int:
    """The multiply-adds of an operation of the contract on these arrays, or else elements."""
    by_name = dict(zip(CONTRACT[name], arrays, strict=False))
    weights = [by_name[key] for key in ("w", "dw") if key in by_name]
    outputs = [by_name[key] for key in ("z", "dz") if key in by_name]
    if weights and outputs:
        return outputs[0].size * prod(weights[0].shape[1:])
    return max(array.size for array in arrays[:-1] if array.dtype.kind == "f")


class Trial:
    """A rank that trains one of NETWORKS in one of METHODS, with `options`, on noise.

    `comm` None stands for the ranks of mpiexec or of a cluster.
    """

    def __init__(self, comm, way, network, batch=64, optimizer="sgd", kernels="vector", **options):
        kind, comm = METHODS[way].load(), comm or world()
        strategy, net, rng = find(kernels), NETWORKS[network], np.random.default_rng(0)
        if kind.kernels:
            strategy = partitioned(comm, strategy)
        images = rng.random((batch, *net.image_shape)).astype(strategy.dtype)
        labels, params = rng.integers(0, net.classes, batch), net.parameters(0, strategy.dtype)
        steps = OPTIMIZERS[optimizer].load()(0.1)
        self.chosen = np.arange(batch)
        self.replica = Replica(strategy, params, images, labels, batch, steps)
        self.method: Method = kind(comm, **options)

    def step(self) -> float:
        """One step; the part of the loss that this rank tells."""
        return self.method.step(self.replica, self.chosen)

    def steps(self, n: int) -> None:
        """So many steps in a row, as an epoch takes them, but none in compiled code."""
        if type(self.method).steps is Method.steps:
            for _ in range(n):
                self.step()
        else:
            self.method.steps(self.replica, np.tile(self.chosen, n))

    def seconds(self, repeats: int, in_a_row: int = 1) -> list[float]:
        """Seconds of a step, from barrier to barrier, so many samples after one to warm up.

        A sample is the mean of so many steps in a row.
        """
        self.step()
        samples = []
        for _ in range(few(repeats)):
            self.method.barrier()
            start = self.method.clock()
            self.steps(in_a_row)
            self.method.barrier()
            samples.append((self.method.clock() - start) / in_a_row)
        return samples


class Counting(World):
    """A world that counts the bytes that each rank sends to each other: `sent`."""

    def __init__(self, n_ranks: int, network: str | None = None):
        super().__init__(n_ranks, network)
        self.sent = np.zeros((n_ranks, n_ranks), np.int64)

    def send(self, request) -> None:
        self.sent[request.rank, request.peer] += request.n_bytes
        super().send(request)
