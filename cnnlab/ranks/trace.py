"""A communicator that logs its messages: with whom, how many bytes, and when."""

import time
from typing import NamedTuple


class Message(NamedTuple):
    """A send or receive: its kind, the other rank, its bytes, and its begin and end in seconds."""

    kind: str
    peer: int
    n_bytes: int
    begin: float
    end: float


class Traced:
    """An MPI communicator with a `log` of each send and receive, as `Message`.

    The clock is the machine's, the same for all its ranks. Other operations pass unlogged.
    """

    def __init__(self, comm):
        self.comm, self.log = comm, []

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def _note(self, kind: str, peer: int, buffer, begin: float) -> None:
        self.log.append(Message(kind, peer, buffer.nbytes, begin, time.perf_counter()))

    def Send(self, buffer, dest: int, tag: int = 0) -> None:
        begin = time.perf_counter()
        self.comm.Send(buffer, dest, tag)
        self._note("send", dest, buffer, begin)

    def Recv(self, buffer, source: int, tag: int = 0) -> None:
        begin = time.perf_counter()
        self.comm.Recv(buffer, source, tag)
        self._note("receive", source, buffer, begin)

    def Sendrecv(self, sent, dest: int, tag: int, received, source: int, from_tag: int) -> None:
        begin = time.perf_counter()
        self.comm.Sendrecv(sent, dest, tag, received, source, from_tag)
        self._note("send", dest, sent, begin)
        self._note("receive", source, received, begin)
