"""What the planner asks a machine: seconds of kernels, of compressors, of steps, of messages."""

import time
from collections.abc import Iterable, Mapping

import numpy as np

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.trial import work
from cnnlab.kernels import KERNELS
from cnnlab.kernels.contract import Strategy
from cnnlab.measure.planner.machine import Kernel, Machine, Packing
from cnnlab.measure.worlds import Compute, compute_model
from cnnlab.network import NETWORKS, Network
from cnnlab.ranks import fit, world
from cnnlab.ranks.virtual import Link
from cnnlab.training import Replica, Sgd

SIZES = (4, 16, 64)  # images, on which kernels are timed
PACKED = (1 << 10, 1 << 14)  # numbers of a message, on which compressors are timed


def machine(name: str, compressors: Iterable[str] = ()) -> Machine:
    """On each rank of a cluster: this machine, for one of NETWORKS, while all ranks are at it."""
    comm = world()
    link = fit.link(comm)
    comm.Barrier()
    return alone(link, NETWORKS[name], compressors)


def alone(link: Link, network: Network, compressors: Iterable[str] = ()) -> Machine:
    """This machine's kernels and compressors, with a link that is not measured."""
    fused = KERNELS["vector"].fused("loss_and_gradients", network)  # or else the sum of its kernels
    whole = compute_model(SIZES, network=network)[0] if fused else None
    return Machine(link, kernel_times(network), whole, packing_times(compressors))


class Timed(Strategy):
    """A strategy whose kernels note what they took: (kernel, images) → seconds of each call.

    What Python does before a call, since the last one was over or `since`, counts as the call's.
    """

    def __init__(self, of: Strategy):
        super().__init__(of.name, of.summary, of.dtype, of.module)
        self.samples: dict[tuple[Kernel, int], list[float]] = {}
        self.since = 0.0

    def fused(self, name: str, network) -> None:
        """Nothing is fused: each operation is timed for itself."""

    def kernel(self, name: str):
        """The raw function `name`, timed."""
        raw = super().kernel(name)

        def timed(*arrays, **options):
            result = raw(*arrays, **options)
            seconds, n = time.perf_counter() - self.since, len(arrays[0])
            key = Kernel(name, work(name, arrays) // n), n
            self.samples.setdefault(key, []).append(seconds)
            self.since = time.perf_counter()
            return result

        return timed


def kernel_times(network: Network, repeats: int = 9) -> dict[Kernel, Compute]:
    """A line through the median times of each kernel of a network, over batches of SIZES."""
    strategy, rng = Timed(KERNELS["vector"]), np.random.default_rng(0)
    images = rng.random((max(SIZES), *network.image_shape), np.float32)
    labels = rng.integers(0, network.classes, len(images))
    of = Replica(strategy, network.parameters(), images, labels, len(images), Sgd(1e-3))
    for _ in range(repeats + 1):  # the first compiles: a median forgets it
        for n in SIZES:
            strategy.since = time.perf_counter()
            of.gradients(np.arange(n))
    found: dict[Kernel, dict[int, float]] = {}
    for (kernel, n), samples in strategy.samples.items():
        found.setdefault(kernel, {})[n] = float(np.median(samples))
    return {kernel: fitted(medians) for kernel, medians in found.items()}


def fitted(medians: Mapping[int, float]) -> Compute:
    """Seconds of a call, and for each of what it is given: a line, relative errors count."""
    sizes, seconds = np.array(list(medians.items())).T
    each, call = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    return Compute(max(0.0, float(call)), max(0.0, float(each)))


def packing_times(names: Iterable[str], repeats: int = 9) -> dict[str, Packing]:
    """What compressors take, by name: lines through medians over messages of PACKED numbers."""
    return {name: Packing(*map(fitted, packed(name, repeats))) for name in names}


def packed(name: str, repeats: int) -> tuple[dict[int, float], dict[int, float]]:
    """The median seconds of encoding and of decoding, by the numbers of a message."""
    values, medians = np.random.default_rng(0).standard_normal(max(PACKED)), {}
    for n in PACKED:
        one, samples, of = compressor(name)(n), [], values[:n].astype(np.float32)
        for _ in range(repeats + 1):
            start = time.perf_counter()
            message = one.encode(of)
            between = time.perf_counter()
            one.decode(message, of.copy())
            samples.append((between - start, time.perf_counter() - between))
        medians[n] = np.median(samples[1:], axis=0)
    return tuple({n: float(both[k]) for n, both in medians.items()} for k in (0, 1))
