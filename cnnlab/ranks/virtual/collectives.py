"""Collectives of virtual ranks, called as mpi4py's are.

They are made of messages, those of arrays as lesson 23 makes them, so they cost what they cost.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cnnlab.ranks import collectives
from cnnlab.ranks.mpi import REDUCTIONS, is_named, name_of
from cnnlab.ranks.schedules import SCHEDULES, Step
from cnnlab.ranks.virtual.faults import Fault, blamed, site, written
from cnnlab.ranks.virtual.messages import Request
from cnnlab.ranks.virtual.objects import Objects
from cnnlab.ranks.virtual.point_to_point import checked
from cnnlab.ranks.virtual.rounds import Beside, barrier, perform, ufunc

LARGE = 65536  # bytes: from here on, an allreduce sends halves of arrays instead of whole ones


class Collectives(Objects):
    """The part of a communicator that all its ranks call together."""

    def Barrier(self) -> None:
        """Wait until all ranks are here: in round k, a message to the rank 2^k further on."""
        with self._collective("Barrier"):
            nothing, distance = np.empty(0, np.uint8), 1
            while distance < self.size:
                to, source = (self.rank + distance) % self.size, (self.rank - distance) % self.size
                self.Sendrecv(nothing, to, 0, nothing.copy(), source, 0)
                distance *= 2

    def Bcast(self, array: np.ndarray, root: int = 0) -> None:
        """Copy the root's array to all ranks, along a binomial tree."""
        with self._collective("Bcast", root, array):
            collectives.broadcast(self, array, root)

    def Allreduce(self, sent, received: np.ndarray, op="SUM") -> None:
        """The sum over all ranks, for all of them; the same bits. `op` may be another reduction."""
        with self._collective("Allreduce", of=received, op=op):
            taken(sent, received)
            perform(self, received.reshape(-1), self._schedule(received), ufunc(op))

    def Reduce(self, sent, received: np.ndarray | None, op="SUM", root: int = 0) -> None:
        """The sum over all ranks, for the root: in turn, from the last rank down."""
        with self._collective("Reduce", root, given(sent, received), op):
            total, distance, combine = np.array(given(sent, received)), 1, ufunc(op)
            mine = (self.rank - root) % self.size
            while distance < self.size:
                if mine % (2 * distance) == distance:
                    return self.Send(total, (self.rank - distance) % self.size)
                if mine + distance < self.size:
                    other = np.empty_like(total)
                    self.Recv(other, (self.rank + distance) % self.size)
                    combine(total, other, out=total)
                distance *= 2
            received[...] = total
        return None

    def Gather(self, sent: np.ndarray, received: np.ndarray | None, root: int = 0) -> None:
        """The array of rank r as row r of the root's."""
        with self._collective("Gather", root, sent):
            collectives.gather(self, sent, received, root)

    def Scatter(self, sent: np.ndarray | None, received: np.ndarray, root: int = 0) -> None:
        """Row r of the root's array to rank r."""
        with self._collective("Scatter", root, received):
            collectives.scatter(self, sent, received, root)

    def Allgather(self, sent: np.ndarray, received: np.ndarray) -> None:
        """The array of rank r as row r, for all: passed around a ring."""
        with self._collective("Allgather", of=sent):
            received[self.rank] = sent
            self._around(received)

    def Allgatherv(self, sent: np.ndarray, received: tuple[np.ndarray, Sequence[int]]) -> None:
        """The array of rank r, of counts[r] elements, behind those before it; as `Allgather`.

        `received` is the array for all of them, flat, and the counts.
        """
        whole, counts = received
        with self._collective("Allgatherv", of=whole):
            ends = [0, *itertools.accumulate(counts)]
            if len(counts) != self.size or ends[-1] != whole.size:
                raise ValueError(
                    f"counts: expected {self.size} that add up to {whole.size}, got {counts}"
                )
            parts = [whole[a:b] for a, b in itertools.pairwise(ends)]
            parts[self.rank][:] = sent.reshape(-1)
            self._around(parts)

    def _around(self, parts: Sequence[np.ndarray]) -> None:
        """Fill the parts of all ranks: each sends on to the next what it got last."""
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for k in range(self.size - 1):
            out, into = (self.rank - k) % self.size, (self.rank - k - 1) % self.size
            self.Sendrecv(parts[out], right, 0, parts[into], left, 0)

    def Alltoall(self, sent: np.ndarray, received: np.ndarray) -> None:
        """Row r of each rank to rank r, as row s from rank s: a message to each other rank."""
        with self._collective("Alltoall", of=sent):
            out, into = (
                rows(name, a, self.size) for name, a in (("sent", sent), ("received", received))
            )
            into[self.rank] = out[self.rank]
            for k in range(1, self.size):
                to, source = (self.rank + k) % self.size, (self.rank - k) % self.size
                self.Sendrecv(out[to], to, 0, into[source], source, 0)

    def Reduce_scatter_block(self, sent: np.ndarray, received: np.ndarray, op="SUM") -> None:
        """The sum of row r over all ranks, for rank r; see `Reduce_scatter`."""
        self.Reduce_scatter(sent, received, op=op)

    def Reduce_scatter(self, sent, received: np.ndarray, recvcounts=None, op="SUM") -> None:
        """The sum of part r over all ranks, for rank r: passed around a ring.

        Parts have `recvcounts` elements, or the same number each. `op` may be another reduction.
        """
        with self._collective("Reduce_scatter", of=sent, op=op):
            counts = [received.size] * self.size if recvcounts is None else list(recvcounts)
            if len(counts) != self.size or sum(counts) != sent.size:
                raise ValueError(
                    f"recvcounts: expected {self.size} that add up to {sent.size}, got {counts}"
                )
            ends = [0, *itertools.accumulate(counts)]
            parts = list(itertools.pairwise(ends))
            flat, right, left = (
                sent.flatten(),
                (self.rank + 1) % self.size,
                (self.rank - 1) % self.size,
            )
            steps = (
                Step(right, *parts[self.rank - k - 1], left, *parts[self.rank - k - 2], add=True)
                for k in range(self.size - 1)
            )
            perform(self, flat, steps, ufunc(op))
            first, last = parts[self.rank]
            received.reshape(-1)[:] = flat[first:last]

    def Iallreduce(self, sent, received: np.ndarray, op="SUM") -> Request:
        """Begin an allreduce; its messages are under way while the rank computes, until `Wait`."""
        collective = self._collective("Iallreduce", of=received, op=op)
        apart(sent, received)
        flat, steps = np.array(given(sent, received)).reshape(-1), self._schedule(received)
        own = None if given(sent, received) is received else sent
        return Beside(self, "Iallreduce", collective, flat, steps, ufunc(op), own, received)

    def Ibarrier(self) -> Request:
        """Begin to wait until all ranks are here; they are when it is done."""
        nothing, steps = np.zeros(1, np.uint8), barrier(self.rank, self.size)
        return Beside(self, "Ibarrier", self._collective("Ibarrier"), nothing, steps, np.add)

    def Dup(self) -> "Collectives":
        """A communicator of the same ranks, whose messages do not meet those of this one."""
        with self._collective("Dup"):
            self.Barrier()
        return self._made("Dup", self.members, self._calls)

    Clone = Dup

    def Split(self, color: int, key: int = 0) -> "Collectives":
        """A communicator of the ranks with the same colour, in the order of their keys."""
        told = self.allgather((color, key, self.me))
        members = tuple(me for its, _, me in sorted(told, key=lambda t: t[1:]) if its == color)
        return self._made("Split", members, self._calls, color)

    def _made(self, by: str, members: tuple[int, ...], *name) -> "Collectives":
        made = type(self)(self.world, self.me, members, (self.group, *name))
        self.world.resources[made.group, self.me] = f"a communicator of {by}", self.me, site()
        return made

    def _schedule(self, array: np.ndarray) -> Iterator[Step]:
        """Whole arrays in each round while they are short, halves and quarters of long ones."""
        name = "rabenseifner" if array.nbytes >= LARGE else "butterfly"
        return SCHEDULES[name](self.rank, self.size, array.size)

    def _collective(self, name: str, root: int | None = None, of=None, op=None) -> "Collective":
        self.world.entered(self.me)
        self._usable()
        self._calls += 1
        return Collective(self, name, root, of, op)


def given(sent, received):
    """The array that a rank gives: that which it receives into, if it says `IN_PLACE`."""
    return received if is_named(sent, "IN_PLACE") else sent


def taken(sent, received: np.ndarray) -> None:
    """Begin with what is given, in the place of the result."""
    apart(sent, received)
    received[...] = given(sent, received)


def apart(sent, received: np.ndarray) -> None:
    """Raise ValueError if what is sent lies where the result is to be, and is not `IN_PLACE`."""
    if not is_named(sent, "IN_PLACE") and np.may_share_memory(sent, received):
        raise ValueError("received: expected another array than the one sent, or IN_PLACE for that")


def rows(name: str, array: np.ndarray, n: int) -> np.ndarray:
    """An array as n rows. Raises ValueError if it has no such number of elements."""
    if checked(name, array).size % n:
        raise ValueError(
            f"{name}: expected a part for each of {n} ranks, got {array.size} elements"
        )
    return array.reshape(n, -1)


@dataclass
class Call:
    """A collective that some ranks have called: which, the first of them where, and who all."""

    name: str
    asked: str
    where: tuple[str, int]
    members: tuple[int, ...]
    ranks: list[int]

    def fault(self) -> Fault:
        """That not all have called it."""
        missing = next(rank for rank in self.members if rank not in self.ranks)
        text = f"{self.asked}: expected on all {len(self.members)} ranks, never on rank {missing}"
        return Fault("call matching", self.ranks[0], written(self.where), text)


class Collective:
    """The messages of one collective, apart from all others; all ranks must call the same one.

    Of arrays, `of` is one that has the same number of elements on all ranks, of the same dtype.
    """

    def __init__(self, comm: Collectives, name: str, root: int | None, of=None, op=None):
        self.comm, self.outer = comm, comm.group
        self.group = (comm.group, comm._calls, "collective")
        if root is not None:
            comm._peer("root", root)
        asked, calls, where = name, comm.world.calls, site()
        if of is not None:
            asked += f" of {np.size(of)} {np.asarray(of).dtype}"
        asked += f" by {name_of('op', op, REDUCTIONS)}" if op is not None else ""
        asked += f" with root {root}" if root is not None else ""
        call = calls.setdefault(self.group, Call(name, asked, where, comm.members, []))
        call.ranks.append(comm.me)
        if call.asked != asked:
            first, mine = f"{call.asked} as on rank {call.ranks[0]}", f"{asked} on rank {comm.me}"
            error = ValueError(f"collectives: expected {first}, got {mine}")
            kind = "parameter matching" if call.name == name else "call matching"
            raise blamed(error, kind, comm.me, written(where))
        if len(call.ranks) == comm.size:
            del calls[self.group]

    def __enter__(self) -> None:
        self.comm.group = self.group
        self.comm.world.left()  # what collectives compute between their messages counts

    def __exit__(self, *_) -> None:
        self.comm.group = self.outer
