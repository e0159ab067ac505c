"""A way to train: what ranks share and how they wait. `Method` trains alone; others build on it."""

import hashlib
import time
from collections.abc import Callable

import numpy as np

from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Loop, Replica

# Images that compiled loops take between two looks at the progress bar: about a tenth of a second;
# and those that ranks take, where Python leads, between two messages about the loss.
IN_A_ROW, BY_RANKS = 16384, 1024


class Method:
    """Train alone: one process takes every batch whole.

    Another way to train overrides what differs: `step` where ranks add to each step, `loop` where
    compiled code does so, `epoch` where ranks play different parts. `comm` is the communicator of
    the ranks that take part; every method of theirs is called on all of them.
    """

    kernels: str | None = None  # the one strategy that it works with; None: any

    def __init__(self, comm=None):
        self.comm = comm
        self.rank, self.size = (0, 1) if comm is None else (comm.rank, comm.size)
        self.kept: dict[str, np.ndarray] = {}  # by a checkpoint, beside parameters and optimiser

    def make_room(self, replica: Replica) -> None:
        """Before a training, and before a checkpoint is read: make the arrays of `kept` anew.

        From then on they are only written to; `gather` brings them up to date on every rank.
        """

    def facts(self) -> dict[str, object]:
        """Of the method, what a training that goes on from a checkpoint must have in common."""
        return {}

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on the images number `chosen`, the batch of all ranks; this rank's loss."""
        loss = replica.gradients(chosen)
        replica.update(len(chosen))
        return loss

    def loop(self, replica: Replica) -> Loop | None:
        """Many steps in compiled code: a function of `order`; None where Python leads."""
        return replica.loop(alone=True)

    def steps(self, replica: Replica, order: np.ndarray) -> float:
        """Take the images number `order`, a batch at a time; this rank's loss, summed."""
        if loop := self.loop(replica):
            return loop(order)
        return sum((self.step(replica, chosen) for chosen in replica.batches(order)), 0.0)

    def images_in_a_row(self, replica: Replica) -> int:
        """Images that one call of `steps` takes: a batch; many of compiled loops or ranks."""
        n_images = IN_A_ROW if self.loop(replica) else BY_RANKS if self.size > 1 else 1
        return max(1, n_images // replica.batch) * replica.batch

    def epoch(
        self, replica: Replica, order: np.ndarray, tell: Callable[[float, int], None]
    ) -> float:
        """This rank's whole program for an epoch; the loss of all ranks, summed over the images.

        `tell(loss, n)` is called now and then with the loss of all ranks on the latest n images.
        """
        total, several = 0.0, self.images_in_a_row(replica)
        for first in range(0, len(order), several):
            part = order[first : first + several]
            loss = self.total(self.steps(replica, part))
            tell(loss, len(part))
            total += loss
        return total

    def gather(self, replica: Replica) -> None:
        """After an epoch, bring the whole parameters and the optimiser's state to every rank."""

    def share(self, n: int) -> slice:
        """This rank's block of n images, as for testing: all of them."""
        return slice(0, n)

    def total(self, number: float) -> float:
        """The sum of a number over all ranks."""
        return number

    def barrier(self) -> None:
        """Wait for all ranks."""

    def close(self) -> None:
        """Free the communicators that the method has made; it trains no more."""

    def leave(self, status: int) -> int:
        """The exit status of this rank; the last that it does with the method."""
        return status

    def clock(self) -> float:
        """Seconds since some moment: of the machine, or of ranks that have a clock of their own."""
        return getattr(self.comm, "clock", time.perf_counter)()

    def agree(self, facts: dict[str, object]) -> None:
        """Raise ValueError on all ranks unless these facts, by name, are the same on each of them.

        A fact is an array, a tuple of them, or anything whose `repr` tells it.
        """
        if self.size == 1:
            return
        first, *others = self.comm.allgather({name: digest(fact) for name, fact in facts.items()})
        for rank, own in enumerate(others, 1):
            for name in (name for name in facts if own[name] != first[name]):
                both = f"rank 0 has {first[name]}, rank {rank} has {own[name]}"
                raise ValueError(f"ranks: expected the same {name} on all, {both}")


class Together(Method):
    """The base of methods whose ranks test together, wait for each other and add numbers up."""

    def share(self, n: int) -> slice:
        """This rank's block of n images; empty where there are more ranks than images."""
        return slice(*block(self.rank, self.size, n))

    def total(self, number: float) -> float:
        """The sum of a number over all ranks."""
        return self.comm.allreduce(number)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.comm.Barrier()


def digest(fact) -> str:
    """A text that differs where facts do, see `Method.agree`; of arrays, a checksum."""
    arrays = fact if isinstance(fact, tuple) else (fact,)
    if not isinstance(arrays[0], np.ndarray):
        return repr(fact)
    result = hashlib.sha256()
    for array in arrays:
        result.update(np.ascontiguousarray(array))
    return result.hexdigest()[:16]
