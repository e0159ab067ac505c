"""Ranks of which any but rank 0 may be killed, while the others go on."""

import contextlib
import math
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable

import numpy as np

from cnnlab.ranks import guard

FIRST = 0  # the rank that must live
TAG = 0  # of messages that make up a collective
PATIENCE = 1.0  # seconds for a message to come to its end after its other side was killed


class Lost(Exception):
    """A rank has been killed; what it has sent before has been received."""

    def __init__(self, rank: int):
        super().__init__(f"rank {rank} was lost")
        self.rank = rank


class Survivors:
    """A communicator of guarded ranks, called as mpi4py's; what it lacks would wait for the dead.

    Messages go between rank 0 and others, and collectives by way of rank 0. It sees by their
    processes whether ranks live, so all must be on its machine, else ValueError. Its `Recv` raises
    `Lost` when one has been killed; then `lost`, a set, has it.
    """

    def __init__(self, comm):
        if guard.MARK not in os.environ:
            raise ValueError("comm: expected ranks under guard, got ranks that mpiexec ends")
        found = comm.allgather((socket.gethostname(), os.getpid()))
        if (n := len({host for host, _ in found})) > 1:
            raise ValueError(f"--lost: expected ranks of one machine with go-on, got {n} machines")
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.pids, self.lost = [pid for _, pid in found], set()
        guard.can_be_missed()

    @property
    def others(self) -> list[int]:
        """The ranks beside rank 0 that are not lost."""
        return [rank for rank in range(1, self.size) if rank not in self.lost]

    def lives(self, rank: int) -> bool:
        """Whether there is a rank's process."""
        try:
            os.kill(self.pids[rank], 0)
        except OSError:  # there is none of that number, or another user's
            return False
        return True

    def lose(self, rank: int) -> None:
        """Go on without a rank; RuntimeError if it was the last but rank 0."""
        self.lost.add(rank)
        if not (left := len(self.others)):
            raise RuntimeError(f"rank {rank} was lost, and no other worker is left")
        workers = "worker" if left == 1 else "workers"
        what = f"cnnlab: rank {rank} was lost: going on with {left} {workers}"
        print(what, file=sys.stderr, flush=True)

    def Send(self, array: np.ndarray, to: int, tag: int = TAG) -> None:
        """Send an array; to one that has been killed meanwhile, nothing."""
        if self.rank != FIRST:
            self.comm.Send(array, to, tag)
        else:
            self.ends(self.comm.Isend(array, to, tag), to)

    def Recv(self, array: np.ndarray, source: int = FIRST, tag: int = TAG) -> None:
        """Receive an array; on rank 0, Lost is raised once a rank has been killed instead."""
        if self.rank != FIRST:
            return self.comm.Recv(array, FIRST)
        while True:
            dead = self.dead()  # before it looks for messages: what they have sent is there
            if (found := self.message(source, tag)) and self.receives(array, found):
                return None
            if dead and not found:
                self.lose(dead[0])
                raise Lost(dead[0])

    def dead(self) -> list[int]:
        """The ranks that have been killed, and are not yet lost."""
        return [rank for rank in self.others if not self.lives(rank)]

    def message(self, source: int, tag: int):
        """The status of a message that could be received, or None."""
        from mpi4py import MPI

        os.sched_yield()  # there may be more ranks than cores
        status = MPI.Status()
        return status if self.comm.Iprobe(source, tag, status) else None

    def receives(self, array: np.ndarray, found) -> bool:
        """Receive that message; whether all of it has come, and from a rank that is not lost."""
        request = self.comm.Irecv(array, found.source, found.tag)
        return self.ends(request, found.source) and found.source not in self.lost

    def ends(self, request, rank: int) -> bool:
        """Whether a message comes to its end, which it may not if the other side is killed."""
        from mpi4py import MPI

        killed = math.inf
        try:
            while not request.Test():
                if killed == math.inf and not self.lives(rank):
                    killed = time.monotonic()
                if time.monotonic() - killed > PATIENCE:
                    return False
        except MPI.Exception:  # the other side's memory is no longer there
            time.sleep(PATIENCE)
            if self.lives(rank):
                raise
            return False
        return True

    def by_first(self, thing, combine: Callable[[dict], object]):
        """What `combine` makes on rank 0 of what each rank gives, by rank; for all."""
        if self.rank != FIRST:
            self.comm.send(thing, FIRST, TAG)
            return self.comm.recv(source=FIRST, tag=TAG)
        given = {FIRST: thing}
        for rank in self.others:
            with contextlib.suppress(Lost):
                given[rank] = self.hear(rank)
        found = combine(given)
        for rank in self.others:
            self.Send(np.frombuffer(pickle.dumps(found), np.uint8), rank, TAG)
        return found

    def hear(self, rank: int):
        """What a rank gives; raises Lost if it has been killed."""
        while True:
            alive = self.lives(rank)  # before it looks for messages
            if found := self.message(rank, TAG):
                array = np.empty(found.count, np.uint8)
                if self.receives(array, found):
                    return pickle.loads(array)
            elif not alive:
                self.lose(rank)
                raise Lost(rank)

    def allreduce(self, number: float) -> float:
        """The sum over all ranks, for all."""
        return self.by_first(number, lambda given: sum(given.values()))

    def allgather(self, thing) -> list:
        """What each rank gives, for all; for one that is lost, what rank 0 does."""
        return self.by_first(
            thing, lambda given: [given.get(rank, given[FIRST]) for rank in range(self.size)]
        )

    def Barrier(self) -> None:
        """Wait until all are here."""
        self.allreduce(0)

    def Bcast(self, array: np.ndarray, root: int = FIRST) -> None:
        """Copy the array of rank 0 to all."""
        if self.rank != FIRST:
            return self.comm.Recv(array, FIRST, TAG)
        for rank in self.others:
            self.Send(array, rank, TAG)
        return None
