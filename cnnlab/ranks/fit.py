"""The virtual link that costs what messages between two real ranks cost."""

import time

import numpy as np
from scipy.optimize import nnls

from cnnlab.ranks import cost_model
from cnnlab.ranks.virtual import Link, OneMemory, one_memory

SIZES = (4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)  # float32: 16 bytes to 1 MB
LATE = 1e-3  # seconds: how late a receiver is, to see whether its sender waits
TRIPS = 9  # there and back, for each repeat
IN_A_ROW = 32  # messages that a sender sends off


def link(comm, repeats: int = 11, quantile: float = 0.5) -> Link:
    """Fit latency, bandwidth, cost of a call and eager limit to messages between ranks 0 and 1.

    Of the repeats, the `quantile` counts. All ranks call it together and get the same. Raises
    ValueError on fewer than two.
    """
    times = [ping_pong(comm, n, TRIPS * repeats, quantile) for n in SIZES]
    model, call = cost_model.fit(SIZES, times), calling(comm, repeats, quantile)
    bandwidth = 1 / model.gap if model.gap else np.inf
    call = min(call, model.latency)  # a message's latency, as it is timed, has the call in it
    return Link(model.latency - call, float(bandwidth), call, eager_limit(comm))


def memory(comm, repeats: int = 11, quantile: float = 0.5) -> OneMemory:
    """The network of two ranks that is fitted to what they exchange, both ways at once.

    Exchanges are what an allreduce is made of. As `link` otherwise, by which calls and the eager
    limit are found.
    """
    call, eager = calling(comm, repeats, quantile), eager_limit(comm)
    times = np.array([exchange(comm, n, TRIPS * repeats, quantile) for n in SIZES])
    n_bytes, long = 4.0 * np.array(SIZES), 4 * np.array(SIZES) > eager
    ways = 1.0 + long  # short ones pass each other, see `OneMemory`
    columns = np.c_[ways, ways * long, ways * n_bytes]
    scale = columns.max(0).clip(1)
    found, _ = nnls(columns / scale / times[:, None], (1 - 2 * call / times).clip(0))
    latency, handshake, gap = map(float, found / scale)
    return one_memory(Link(latency, 1 / gap if gap else np.inf, call, eager), handshake)


def exchange(comm, n: int, trips: int, quantile: float = 0.5) -> float:
    """The seconds in which ranks 0 and 1 both send n float32 and receive them into new memory.

    What has been sent is in the other one's cache, too, so it takes longer to add to it than to do
    so once more. That belongs to the exchange: to half of it, as an allreduce adds half the time.
    """
    array, samples, clock = np.zeros(n, np.float32), [], getattr(comm, "clock", time.perf_counter)
    peer = 1 - comm.rank
    for _ in range(2 * (trips + 1) if comm.rank < 2 else 0):
        times, received = [clock()], np.empty_like(array)
        comm.Sendrecv(array, peer, 0, received, peer, 0)
        for _ in range(2):
            times.append(clock())
            array += received
        sent, added, again = np.diff([*times, clock()])
        samples.append(sent + (added - again) / 2)
    # Who comes late waits little, and the other one waits long; then they change. So two together.
    pairs = np.reshape(samples, (-1, 2)).mean(1)[1:]  # the first warm up
    return comm.bcast(float(np.quantile(pairs, quantile)) if comm.rank == 0 else 0.0)


def ping_pong(comm, n: int, trips: int, quantile: float = 0.5) -> float:
    """The one-way seconds of n float32, into new memory, as an allreduce receives them."""
    array, samples, clock = np.ones(n, np.float32), [], getattr(comm, "clock", time.perf_counter)
    comm.Barrier()
    for _ in range(trips + 1):
        received, start = np.empty_like(array), clock()
        if comm.rank == 0:
            comm.Send(array, 1)
            comm.Recv(received, 1)
        elif comm.rank == 1:
            comm.Recv(received, 0)
            comm.Send(array, 0)
        samples.append((clock() - start) / 2)
    return comm.bcast(float(np.quantile(samples[1:], quantile)))  # of rank 0; the first warms up


def calling(comm, repeats: int = 11, quantile: float = 0.5) -> float:
    """The seconds that rank 0 needs to send off a short message, as all ranks are told."""
    short, samples, clock = np.ones(2, np.float32), [], getattr(comm, "clock", time.perf_counter)
    for _ in range(repeats):
        comm.Barrier()
        start = clock()
        for _ in range(IN_A_ROW if comm.rank == 0 else 0):
            comm.Send(short, 1)
        samples.append((clock() - start) / IN_A_ROW)
        for _ in range(IN_A_ROW if comm.rank == 1 else 0):
            comm.Recv(short, 0)
    return comm.bcast(float(np.quantile(samples, quantile)))


def eager_limit(comm, repeats: int = 5) -> int:
    """The length in bytes up to which a send is over before its receiver is there."""
    limit, clock = 0, getattr(comm, "clock", time.perf_counter)
    for n in SIZES:
        buffer, samples = np.ones(n, np.float32), []
        for _ in range(repeats):
            comm.Barrier()
            start = clock()
            if comm.rank == 0:
                comm.Send(buffer, 1)
                samples.append(clock() - start)
            elif comm.rank == 1:
                be_late(comm, clock, start + LATE)
                comm.Recv(buffer, 0)
        if not comm.bcast(comm.rank == 0 and bool(np.median(samples) < LATE / 2)):
            return limit
        limit = buffer.nbytes
    return limit


def be_late(comm, clock, until: float) -> None:
    """Compute until a time by the ranks' clock."""
    if hasattr(comm, "compute"):
        comm.compute(max(0.0, until - clock()))
    while clock() < until:
        pass
