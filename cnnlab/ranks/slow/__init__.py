"""A slow network on the real ranks of one machine: a message is seen no earlier than it says.

So what a network costs can be measured where there is none: ranks spin until a message may be seen,
on the clock that all processes of a machine share. Nothing is sped up: what MPI itself takes comes
on top where it takes longer.
"""

import contextlib
from collections.abc import Iterator

from cnnlab.ranks.slow.comm import Slow
from cnnlab.ranks.virtual.link import Link

__all__ = ["Slow", "network"]


@contextlib.contextmanager
def network(latency: float, bandwidth: float, comm=None) -> Iterator[Slow]:
    """Slow down the messages between the ranks of `comm` (all ranks) for a `with` block.

    Yields a communicator: its messages are seen no earlier than `latency` seconds after they are
    out, n bytes take n / `bandwidth` seconds, and what a rank sends goes out one after the other.
    Raises ValueError for impossible numbers, or ranks of several machines, which share no clock.
    """
    from mpi4py import MPI

    link, comm = Link(latency, bandwidth, call=0.0), comm or MPI.COMM_WORLD
    if len(set(names := comm.allgather(MPI.Get_processor_name()))) > 1:
        raise ValueError(f"network: expected ranks of one machine, got {len(set(names))} machines")
    slow = Slow(comm, link)
    yield slow
    slow.Free()
