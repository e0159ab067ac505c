"""A piece of a network: consecutive layers, each of them cut among the ranks of a communicator."""

from itertools import accumulate
from math import prod

import numpy as np

from cnnlab.distributed.exchange import Exchange, length
from cnnlab.distributed.layout import FEATURES, cuts, input_axis, shares
from cnnlab.kernels.composition import layer_backward, layer_forward
from cnnlab.kernels.contract import Strategy
from cnnlab.network import AveragePool, Network

Kept = list[tuple[np.ndarray, np.ndarray]]  # the input and the output of each layer


class Piece:
    """Layers [start, stop) of a network, as one rank of `comm` computes its share of each.

    A layer that is cut by features has its own filters here, with one cut by pixels all ranks have
    the same. `positions` are those of the parameters here among all of the network's; `hold` gives
    the piece its own copy of them, and the place where gradients are added up.
    """

    def __init__(self, network: Network, strategy: Strategy, start: int, stop: int, comm, by: str):
        self.network, self.strategy, self.comm = network, strategy, comm
        self.start, self.stop = start, stop
        self.places, of_all = network.places, cuts(network, comm.size, by)
        travels = shares(network, comm.size, by)
        self.axis = [cut.axis for cut in of_all]
        self.mine = [cut.ranges[comm.rank] for cut in of_all]
        self.exchanges = {}
        for i in range(start, stop):
            axis, (*_, owned, wanted) = input_axis(self.places, i, by), travels[i]
            if i:
                self.exchanges[i] = Exchange(comm, owned, wanted, axis)
            else:  # every rank has the images
                self.window = (slice(None),) * axis + (slice(*wanted[comm.rank]),)
        n = network.classes
        self.outputs = Exchange(comm, of_all[-1].ranges, [(0, n)] * comm.size, FEATURES)
        self.positions, self.shapes, self.shared = self._find_parameters()

    def _find_parameters(self) -> tuple[np.ndarray, list, list[slice]]:
        """Positions of this rank's parameters, their layers and shapes, and which are shared."""
        shapes = self.network.parameter_shapes
        firsts = dict(zip(shapes, accumulate(map(prod, shapes.values()), initial=0), strict=False))
        positions, found, shared, n = [np.empty(0, np.int64)], [], [], 0
        for i in range(self.start, self.stop):
            place = self.places[i]
            for name, (rows, *rest) in place.layer.parameter_shapes(place.input_shape).items():
                a, b = self.mine[i] if self.axis[i] == FEATURES else (0, rows)
                row, first = prod(rest), firsts[f"{place.name}_{name}"]
                positions.append(np.arange(first + a * row, first + b * row))
                found.append((i, (b - a, *rest)))
                if self.axis[i] != FEATURES:
                    shared.append(slice(n, n + len(positions[-1])))
                n += len(positions[-1])
        return np.concatenate(positions), found, shared

    def hold(self, flat: np.ndarray, sums: np.ndarray) -> None:
        """Take `flat` as the parameters, as `positions` orders them; gradients go to `sums`."""
        self.weights: dict[int, tuple] = {}
        self.grads: dict[int, tuple] = {}
        self.sums, n = sums, 0
        for i, shape in self.shapes:
            for views, of in ((self.weights, flat), (self.grads, sums)):
                views[i] = (*views.get(i, ()), of[n : n + prod(shape)].reshape(shape))
            n += prod(shape)
        for i in range(self.start, self.stop):
            place, mine = self.places[i], slice(*self.mine[i])
            if isinstance(place.layer, AveragePool):
                fixed = place.layer.fixed_weights(place.input_shape, flat.dtype)
                whole = self.axis[i] != FEATURES
                self.weights[i] = fixed if whole else tuple(array[mine] for array in fixed)

    def shape(self, i: int, n: int) -> tuple[int, ...]:
        """The shape of this rank's share of the output of layer i, for n images."""
        shape, axis = [n, *self.places[i].shape], self.axis[i]
        shape[axis] = length(self.mine[i])
        return tuple(shape)

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, Kept]:
        """From this rank's share of the input (of whole images) to its share of the output."""
        kept = []
        for i in range(self.start, self.stop):
            x = self.exchanges[i].fetch(x) if i else np.ascontiguousarray(x[self.window])
            y = np.empty(self.shape(i, len(x)), x.dtype)
            if y.size:
                with self.strategy.lock:
                    layer_forward(self.strategy, self.places[i], self.weights.get(i, ()), x, y)
            kept.append((x, y))
            x = y
        return x, kept

    def loss(self, y: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss, told on rank 0 alone, and this rank's share of its gradient below the end."""
        outputs = self.outputs.fetch(y)
        dy = np.empty_like(outputs)
        with self.strategy.lock:
            loss = float(self.strategy.kernel("cross_entropy")(outputs, labels, dy))
        mine = np.ascontiguousarray(dy[:, slice(*self.mine[-1])])
        return (0.0 if self.comm.rank else loss), mine

    def backward(self, kept: Kept, dy: np.ndarray) -> tuple[np.ndarray | None, dict]:
        """The gradient of the input, None where nobody needs it; that of each layer's output."""
        of_outputs, first = {}, self.network.first_learned
        for i in reversed(range(max(self.start, first), self.stop)):
            if i == len(self.places) - 1:  # the loss has seen to the last sigmoid
                continue
            of_outputs[i] = dy
            if i == first:
                return None, of_outputs
            (x, y), weights = kept[i - self.start], self.weights.get(i, ())
            dx = np.empty_like(x)
            if y.size:
                with self.strategy.lock:
                    layer_backward(self.strategy, self.places[i], weights, (), x, y, dy, dx)
            dy = self.exchanges[i].give_back(dx)
        return (dy if self.start > first else None), of_outputs

    def add_gradients(self, kept: Kept, of_outputs: dict) -> None:
        """Add the gradients of the weights, of which `backward` found what they need."""
        for i, dy in of_outputs.items():
            if i in self.grads and dy.size:
                (x, y), found = kept[i - self.start], [np.empty_like(g) for g in self.grads[i]]
                with self.strategy.lock:
                    layer_backward(self.strategy, self.places[i], (), found, x, y, dy, None)
                for total, grad in zip(self.grads[i], found, strict=True):
                    total += grad

    def add_shared(self) -> None:
        """Add up the gradients of weights that all ranks have."""
        for where in self.shared:
            mine = self.sums[where].copy()
            self.comm.Allreduce(mine, self.sums[where])
