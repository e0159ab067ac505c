"""Two ways for ranks to train together, for `cnnlab.training.train(…, ranks=…)`."""

import functools

import numpy as np

from cnnlab.kernels import messages
from cnnlab.kernels.contract import Strategy
from cnnlab.network import Parameters, chosen_gradients
from cnnlab.ranks.schedules import block
from cnnlab.ranks.window import one_machine, team
from cnnlab.training import OneRank


class LayerParallel(OneRank):
    """Every rank takes whole batches; the strategy `ranks` shares the work of each layer."""

    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.comm.Barrier()


class DataParallel(LayerParallel):
    """Each rank takes its share of every batch; one allreduce sums up the gradients.

    All ranks hold the same parameters and draw the same batches; each takes a share of the images.
    Ranks of one machine add up their gradients in memory that they share; those of several, with
    several threads, or with `window` off, send a message. With `overlap` a share is taken in two
    halves, and the message of the first is on its way while the second is computed.
    """

    def __init__(self, comm, overlap: bool = False, window: bool = True):
        super().__init__(comm)
        self.overlap, self.window = overlap, window and not overlap
        self.messages = functools.cache(functools.partial(messages.between, comm, 1 + overlap))

    @functools.cached_property
    def one_machine(self) -> bool:
        """Whether the ranks could share memory."""
        return one_machine(self.comm)

    def sgd_steps(self, strategy: Strategy):
        """The strategy's loop over batches, if it has one: it does what `gradients` does."""
        many_steps = strategy.sgd_steps

        def with_messages(params, grads, *batches):
            mine = many_steps(params, grads, *batches, self.messages(grads.flat.size))
            return self.comm.allreduce(mine)

        def in_memory(params, grads, *batches):
            ranks = team(self.comm, grads.flat.size)
            own = Parameters(params.network, flat=ranks.parts[self.rank, : grads.flat.size])
            mine = many_steps(params, own, *batches, ranks)
            grads.flat[:] = ranks.total
            return self.comm.allreduce(mine)

        if self.size == 1:
            return many_steps
        if many_steps and self.window and not strategy.parallel and self.one_machine:
            return in_memory
        return many_steps and with_messages if messages.reachable() else None

    def share(self, chosen: np.ndarray) -> np.ndarray:
        """This rank's block of the indices of a batch; empty where there are more ranks."""
        first, last = block(self.rank, self.size, len(chosen))
        return chosen[first:last]

    def gradients(
        self, strategy: Strategy, params: Parameters, images, labels, chosen, grads: Parameters
    ) -> float:
        """Loss and gradients of the whole batch, from this rank's `chosen` images and labels.

        As `network.chosen_gradients`, but the share may be empty. All ranks get the same bits.
        """
        half = len(chosen) // 2
        parts = [chosen[:half], chosen[half:]] if self.overlap else [chosen]
        # With the loss at its end: one message. They stay here for as long as it is on its way.
        mine, totals = np.zeros((2, len(parts), grads.flat.size + 1), grads.flat.dtype)
        requests = []
        for part, own, total in zip(parts, mine, totals, strict=True):
            if len(part):
                own[-1] = chosen_gradients(strategy, params, images, labels, part, grads)
                own[:-1] = grads.flat
            if self.overlap:
                requests.append(self.comm.Iallreduce(own, total))
            else:
                self.comm.Allreduce(own, total)
        for request in requests:
            request.Wait()
        total = totals.sum(0)
        grads.flat[:] = total[:-1]
        return float(total[-1])

    def total(self, number: int) -> int:
        """The sum of a number over all ranks."""
        return self.comm.allreduce(number)
