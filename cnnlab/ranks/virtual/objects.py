"""Collectives of objects, which are pickled: those whose names mpi4py writes in lower case."""

import functools
import operator

from cnnlab.ranks.mpi import REDUCTIONS, name_of

FUNCTIONS = dict(zip(REDUCTIONS, (operator.add, operator.mul, max, min), strict=True))


class Objects:
    """The part of a communicator that its ranks call together, with any object."""

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.Barrier()

    def allgather(self, thing) -> list:
        """The objects of all ranks, in order, for all of them: at each step, all known so far."""
        with self._collective("allgather"):
            return self._all(thing)

    def _all(self, thing) -> list:
        known, distance = {self.rank: thing}, 1
        while distance < self.size:
            to, source = (self.rank + distance) % self.size, (self.rank - distance) % self.size
            known = known | self.sendrecv(known, to, 0, None, source, 0)
            distance *= 2
        return [known[rank] for rank in range(self.size)]

    def gather(self, thing, root: int = 0) -> list | None:
        """The objects of all ranks, in order, for the root."""
        with self._collective("gather", root):
            return self._to(root, thing)

    def _to(self, root: int, thing) -> list | None:
        if self.rank != root:
            return self.send(thing, root)
        return [thing if r == root else self.recv(source=r) for r in range(self.size)]

    def bcast(self, thing, root: int = 0):
        """The root's object, for all of them, along a binomial tree."""
        with self._collective("bcast", root):
            mine, distance = (self.rank - root) % self.size, 1
            while distance < self.size:
                if mine < distance and mine + distance < self.size:
                    self.send(thing, (self.rank + distance) % self.size)
                elif distance <= mine < 2 * distance:
                    thing = self.recv(source=(self.rank - distance) % self.size)
                distance *= 2
        return thing

    def scatter(self, things, root: int = 0):
        """Object r of the root's to rank r."""
        with self._collective("scatter", root):
            if self.rank != root:
                return self.recv(source=root)
            self._one_each(things)
            for rank in range(self.size):
                if rank != root:
                    self.send(things[rank], rank)
            return things[root]

    def alltoall(self, things) -> list:
        """Object r of each rank to rank r: what they have for this one, in the order of ranks."""
        with self._collective("alltoall"):
            self._one_each(things)
            found = {self.rank: things[self.rank]}
            for k in range(1, self.size):
                to, source = (self.rank + k) % self.size, (self.rank - k) % self.size
                found[source] = self.sendrecv(things[to], to, 0, None, source, 0)
        return [found[rank] for rank in range(self.size)]

    def allreduce(self, thing, op="SUM"):
        """The sum, product, maximum or minimum over all ranks, for all of them."""
        combine = FUNCTIONS[name_of("op", op, REDUCTIONS)]
        with self._collective("allreduce", op=op):
            return functools.reduce(combine, self._all(thing))

    def reduce(self, thing, op="SUM", root: int = 0):
        """The sum, product, maximum or minimum over all ranks, for the root."""
        combine = FUNCTIONS[name_of("op", op, REDUCTIONS)]
        with self._collective("reduce", root, op=op):
            found = self._to(root, thing)
        return functools.reduce(combine, found) if self.rank == root else None

    def _one_each(self, things) -> None:
        if len(things) != self.size:
            raise ValueError(f"things: expected one for each of {self.size}, got {len(things)}")
