"""Kernels that take virtual time by what they do: a run takes the same each time."""

from collections.abc import Sequence
from math import prod

import numpy as np

from cnnlab.distributed import METHODS
from cnnlab.distributed.data_parallel import partitioned
from cnnlab.kernels import KERNELS, find
from cnnlab.kernels.contract import CONTRACT, Strategy
from cnnlab.network import NETWORKS
from cnnlab.ranks import world
from cnnlab.ranks.virtual import World
from cnnlab.runtime.failures import few
from cnnlab.training import OPTIMIZERS, Method, Replica

RATE, CALL = 2e9, 2e-6  # operations a second, and seconds a call: about one core's


class Charged(Strategy):
    """A strategy on a virtual rank: it computes, and lets the rank's clock go on by a model.

    A kernel takes `CALL` seconds and its multiply-adds, or else elements, over `RATE`.
    """

    def __init__(self, net: Strategy, comm):
        super().__init__(net.name, net.summary, net.dtype, net.module)
        self.comm = comm

    def fused(self, name: str, network) -> None:
        """Nothing is fused: each operation is charged for itself."""

    def kernel(self, name: str):
        """The raw function `name`; it is charged for when it has been called."""
        raw = super().kernel(name)

        def charged(*arrays, **options):
            result = raw(*arrays, **options)
            self.comm.compute(CALL + work(name, arrays) / RATE)
            return result

        return charged


def work(name: str, arrays: tuple[np.ndarray, ...]) -> int:
    """The multiply-adds of an operation of the contract on these arrays, or else elements."""
    by_name = dict(zip(CONTRACT[name], arrays, strict=False))
    weights = [by_name[key] for key in ("w", "dw") if key in by_name]
    outputs = [by_name[key] for key in ("z", "dz") if key in by_name]
    if weights and outputs:
        return outputs[0].size * prod(weights[0].shape[1:])
    return max(array.size for array in arrays[:-1] if array.dtype.kind == "f")


# --- one way to train -----------------------------------------------------------------------------


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

    @property
    def n_bytes(self) -> dict[str, int]:
        """The bytes of parameters, gradients and the optimiser's state on this rank."""
        if hasattr(self.method, "part"):
            return self.method.part(self.replica).n_bytes
        state = sum(array.nbytes for array in self.replica.optimizer.state.values())
        n = self.replica.params.flat.nbytes
        return {"parameters": n, "gradients": n, "optimizer": state}


def parameters(comm, way: str, network: str, **options) -> np.ndarray:
    """On a rank: the whole network's parameters after a step, see `Trial`."""
    trial = Trial(comm, way, network, **options)
    trial.step()
    trial.method.gather(trial.replica)
    trial.method.close()
    return trial.replica.params.flat.copy()


class Counting(World):
    """A world that counts the bytes that each rank sends to each other: `sent`."""

    def __init__(self, n_ranks: int, network: str | None = None):
        super().__init__(n_ranks, network)
        self.sent = np.zeros((n_ranks, n_ranks), np.int64)

    def send(self, request) -> None:
        """Post a send, and count it."""
        self.sent[request.rank, request.peer] += request.n_bytes
        super().send(request)


def sent(n_ranks: int, way: str, network: str, in_a_row: int = 1, **options) -> np.ndarray:
    """The bytes of a step from each of so many virtual ranks (row) to each other, int64 (P,P).

    Of several steps in a row, those of all, after a first of an epoch that is not counted.
    """

    def steps(comm, n: int) -> None:
        Trial(comm, way, network, **options).steps(n)

    worlds = Counting(n_ranks), Counting(n_ranks)
    for n, counting in zip((1, 1 + in_a_row), worlds, strict=True):
        counting.run(steps, n)
    return worlds[1].sent - worlds[0].sent


def virtual_seconds(
    n_ranks: int, network: str | None, way: str, net: str, in_a_row: int = 1, **options
) -> float:
    """Virtual seconds of a step of NETWORKS[net], kernels charged by a model: see `Charged`.

    `network` is that of a `World`.
    """

    def program(comm) -> list[float]:
        charged = Charged(KERNELS["vector"], comm)
        return Trial(comm, way, net, kernels=charged, **options).seconds(1, in_a_row)

    return World(n_ranks, network).run(program)[0][0]


def held(n_ranks: int, way: str, network: str, **options) -> Sequence[dict[str, int]]:
    """What each of so many virtual ranks holds, in bytes; see `Trial.n_bytes`."""
    return World(n_ranks).run(lambda comm: Trial(comm, way, network, **options).n_bytes)
