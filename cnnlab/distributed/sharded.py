"""Data parallelism with nothing held twice: parameters, gradients and state are sharded."""

from itertools import accumulate, pairwise
from math import prod

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.model import Exchange
from cnnlab.kernels.composition import backwards, layer_backward, layer_forward, sources
from cnnlab.network import AveragePool
from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Replica


class Sharded(Holder):
    """Each rank takes a share of every batch, and holds a share of every layer's parameters.

    An all-gather brings a layer's parameters just before they are needed, forward and again
    backward; a reduce-scatter adds up its gradients, and leaves each rank those that it holds
    (Rajbhandari et al., ZeRO, 2020, stage 3).
    """

    def cut(self, replica: Replica) -> np.ndarray:
        """The positions of this rank's block of every layer's parameters."""
        network, size = replica.params.network, self.size
        shapes = [p.layer.parameter_shapes(p.input_shape) for p in network.places]
        lengths = [sum(map(prod, group.values())) for group in shapes]
        self.shapes, self.exchanges, self.mine, positions, n = shapes, {}, {}, [], 0
        for i, (first, last) in enumerate(pairwise(accumulate(lengths, initial=0))):
            blocks = [block(rank, size, last - first) for rank in range(size)]
            a, b = blocks[self.rank]
            self.exchanges[i] = Exchange(self.comm, blocks, [(0, last - first)] * size, 0)
            self.mine[i], n = slice(n, n + b - a), n + b - a
            positions.append(np.arange(first + a, first + b))
        return np.concatenate(positions)

    def whole(self, replica: Replica, part: Part, i: int) -> tuple[np.ndarray, ...]:
        """Weights and bias of layer i, from the shares of all ranks: to be used and dropped."""
        place = replica.params.network.places[i]
        if isinstance(place.layer, AveragePool):
            return place.layer.fixed_weights(place.input_shape, part.params.flat.dtype)
        if not self.shapes[i]:
            return ()
        return self.views(i, self.exchanges[i].fetch(part.params.flat[self.mine[i]]))

    def views(self, i: int, flat: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights and bias of layer i within an array of both."""
        result, n = [], 0
        for shape in self.shapes[i].values():
            result.append(flat[n : n + prod(shape)].reshape(shape))
            n += prod(shape)
        return tuple(result)

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of this rank's share of a batch; of the gradients of all, those that it holds."""
        strategy, network = replica.strategy, replica.params.network
        share = chosen[self.share(len(chosen))]
        outputs, n, loss = [strategy.take(replica.images, share)], len(share), 0.0
        for i, place in enumerate(network.places):
            weights = self.whole(replica, part, i)
            y = np.empty((n, *place.shape), strategy.dtype)
            if n:  # more ranks than images: one without takes part in the messages
                with strategy.lock:
                    layer_forward(strategy, place, weights, sources(place, outputs), y)
            outputs.insert(-1, y)
        dy = np.empty_like(y)
        if n:
            loss = float(strategy.kernel("cross_entropy")(y, replica.labels[share], dy))
        for i, place, *around in backwards(network, outputs, dy):
            weights = self.whole(replica, part, i)
            result = np.zeros(sum(map(prod, self.shapes[i].values())), strategy.dtype)
            if n:
                with strategy.lock:
                    layer_backward(strategy, place, weights, self.views(i, result), *around)
            if result.size:
                part.grads.flat[self.mine[i]] = self.exchanges[i].give_back(result)
        return loss
