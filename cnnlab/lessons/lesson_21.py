"""The exercises of lesson 21."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cnnlab.check import kinds
from cnnlab.kernels import KERNELS, partitioned
from cnnlab.kernels.composition import composed
from cnnlab.measure.timing import Timing
from cnnlab.network import Network
from cnnlab.ranks import measure, world
from cnnlab.runtime.failures import few


def covering(blocks) -> str:
    """What is wrong with blocks for many numbers of things and ranks, in words."""
    for size in range(1, 10):
        for n in range(30):
            result = [blocks(i, size, n) for i in range(size)]
            covered = [j for first, last in result for j in range(first, last)]
            lengths = [last - first for first, last in result]
            falling = lengths == sorted(lengths, reverse=True)
            if covered != list(range(n)) or lengths[0] - lengths[-1] > 1 or not falling:
                return f"{n} things on {size} ranks: got {result}"
    return ""


@kinds.tested(
    covering,
    "divmod(n, size) gives the least that each rank gets, and how many are left over.",
    "The first `more` ranks get one more, so block i begins at i · each + min(i, more).",
)
def blocks(i, size, n):
    """The ranks before i have `each`, and the first `more` of them one more."""
    each, more = divmod(n, size)
    first = i * each + min(i, more)
    return first, first + each + (i < more)


@kinds.choice(
    ["finalize", "reduce", "division"],
    "Which of the three concerns the numbers, which the ranks, and which the end of the program?",
    "MPI_Reduce leaves the sum on one rank; n / size rounds down; what stands behind a return "
    "never runs.",
)
def bugs():
    """Allreduce; blocks that cover all; finalise before you return."""
    return ["reduce", "division", "finalize"]


@kinds.formula(
    lambda rng: {"before": int(rng.integers(1, 100)), "after": int(rng.integers(100, 1000))},
    "What is sent are outputs. Whose?",
    "There are outputs for every image, so the bytes grow as the batch does.",
)
def factor(before, after):
    """It sends outputs, and there are outputs for every image."""
    return after / before


# --- where the time of a step goes whose layers are shared by ranks -------------------------------

Samples = dict[str, list[float]]


class Silent:
    """A communicator that sends nothing, and notes what it should have gathered."""

    def __init__(self, comm):
        self.rank, self.size, self.asked = comm.rank, comm.size, []

    def Allgatherv(self, part, whole) -> None:
        """Note the counts of the blocks of all ranks."""
        self.asked.append(whole[1])


class Stopwatch:
    """A strategy's functions, and the seconds spent in them."""

    def __init__(self, strategy):
        self.strategy, self.seconds = strategy, 0.0

    def __getattr__(self, name):
        function = getattr(self.strategy, name)

        def timed(*arguments):
            begin = time.perf_counter()
            result = function(*arguments)
            self.seconds += time.perf_counter() - begin
            return result

        return timed


@contextlib.contextmanager
def in_place(**names) -> Iterator[None]:
    """Other objects in place of some that `partitioned` names."""
    before = {name: getattr(partitioned, name) for name in names}
    try:
        vars(partitioned).update(names)
        yield
    finally:
        vars(partitioned).update(before)


def samples(comm, n_images: int = 64, repeats: int = 11) -> Samples:
    """Runs on every rank: seconds of a step, whole and in parts, samples in turn by name.

    one rank : `vector`, operation by operation, on rank 0
    layers : each layer shared by all ranks, after a check of its gradients
    local : the same, but nothing is sent
    messages : what is gathered in a step, with nothing in between
    exchanges : the same blocks, sent and received by `exchange`
    kernels : the seconds of `local` that are spent in kernels
    """
    net, rng = Network(), np.random.default_rng(0)
    x = rng.random((n_images, *net.image_shape), np.float32)
    batch = net.parameters(0), x, rng.integers(0, net.classes, n_images)
    result, exact, ignored = net.zeros(), net.zeros(), net.zeros()

    def alone():
        composed(KERNELS["vector"], *batch, exact)

    def together():
        composed(KERNELS["partitioned"], *batch, result)

    alone()
    together()
    if not np.allclose(result.flat, exact.flat, rtol=1e-4, atol=1e-3):
        raise AssertionError("layers: the gradients are wrong")
    silent, watch = Silent(comm), Stopwatch(partitioned.vector)

    def local():
        with in_place(communicator=lambda: silent, vector=watch):
            composed(KERNELS["partitioned"], *batch, ignored)

    local()
    buffers = [
        (np.zeros(counts[comm.rank], np.float32), (np.zeros(sum(counts), np.float32), counts))
        for counts in silent.asked
    ]

    def messages():
        for part, whole in buffers:
            comm.Allgatherv(part, whole)

    def exchanges():
        for part, whole in buffers:
            exchange(comm, part, whole)

    calls = {"one rank": alone if comm.rank == 0 else lambda: None, "layers": together}
    calls |= {"local": local, "messages": messages, "exchanges": exchanges}
    timed = measure.alternately(comm, calls, repeats)
    watch.seconds = 0.0
    shares = []
    for _ in range(few(repeats)):
        watch.seconds, begin = 0.0, time.perf_counter()
        local()
        shares.append(watch.seconds / (time.perf_counter() - begin))
    share = comm.allreduce(float(np.median(shares))) / comm.size
    return timed | {"kernels": [share * seconds for seconds in timed["local"]]}


def exchange(comm, part: np.ndarray, whole: tuple[np.ndarray, Sequence[int]]) -> None:
    """What `comm.Allgatherv(part, whole)` does, with each other rank in turn."""
    array, counts = whole
    blocks = np.split(array, np.cumsum(counts)[:-1])
    blocks[comm.rank][:] = part
    for shift in range(1, comm.size):
        to, source = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        comm.Sendrecv(part, to, 0, blocks[source], source, 0)


def with_messages(sizes: Sequence[int], n_images: int) -> tuple[list[list[float]], Samples]:
    """Runs on every rank: samples of messages of these sizes, and those of a step in parts."""
    comm = world()
    return measure.ping_pong(comm, sizes), samples(comm, n_images)


def parts(group: Mapping[str, Timing]) -> dict[str, float]:
    """The median seconds of a step on ranks, cut up; what no part explains is the rest."""
    whole, local, sent, kernels = (
        group[name].median for name in ("layers", "local", "messages", "kernels")
    )
    rest = max(0.0, whole - local - sent)
    return {"kernels": kernels, "copies": local - kernels, "messages": sent, "the rest": rest}
