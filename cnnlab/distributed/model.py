"""Pieces of an array on many ranks: what one needs of the others', and its partial sums back.

Ranks own pieces of an axis that do not overlap. Where each needs more than it owns, or something
else, the others send it: all-gather where everybody needs all, a halo where a few rows, and nothing
where the pieces are those it owns. Backwards, ranks send what they have found for pieces of others,
who add it up: reduce-scatter where everybody needed all.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.kernels.composition import layer_backward, layer_forward
from cnnlab.kernels.contract import Strategy
from cnnlab.network import AveragePool, Conv, Dense, Network, Pad, Parameters, Place, Pool
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import one_of

Range = tuple[int, int]
TAG = 78  # keeps these messages apart from the caller's


class Exchange:
    """Who sends which pieces of an axis to whom: rank r owns owned[r], and needs needed[r]."""

    def __init__(self, comm, owned: Sequence[Range], needed: Sequence[Range], axis: int):
        self.comm, self.axis, me = comm, axis, comm.rank
        pairs = zip(owned, needed, strict=True)
        self.at_home = all(a == b or not (length(a) or length(b)) for a, b in pairs)
        self.owned, self.needed = owned[me], needed[me]
        self.to = [overlap(owned[me], range_) for range_ in needed]  # by rank
        self.source = [overlap(range_, needed[me]) for range_ in owned]

    def fetch(self, own: np.ndarray) -> np.ndarray:
        """What this rank needs of the whole array, from its own piece and those of others."""
        if self.at_home:
            return own
        result = self._empty(own, self.needed)
        self._swap(own, self.owned, self.to, result, self.needed, self.source, add=False)
        return result

    def give_back(self, partial: np.ndarray) -> np.ndarray:
        """The sum, for this rank's own piece, of what the ranks have found for what they needed."""
        if self.at_home:
            return partial
        total = self._empty(partial, self.owned)
        total[...] = 0
        self._swap(partial, self.needed, self.source, total, self.owned, self.to, add=True)
        return total

    def _empty(self, like: np.ndarray, range_: Range) -> np.ndarray:
        shape = *like.shape[: self.axis], length(range_), *like.shape[self.axis + 1 :]
        return np.empty(shape, like.dtype)

    def _swap(self, out, out_range, to, into, in_range, source, add: bool) -> None:
        """Send pieces of `out`, receive pieces of `into`; each range begins at its array's 0."""
        me, arrivals, sent = self.comm.rank, [], []
        for rank, range_ in enumerate(source):
            if rank != me and length(range_):
                piece = self._empty(into, range_)
                arrivals.append((self.comm.Irecv(piece, rank, TAG), range_, piece))
        for rank, range_ in enumerate(to):
            if rank != me and length(range_):
                piece = np.ascontiguousarray(out[self._at(range_, out_range)])
                sent.append((self.comm.Isend(piece, rank, TAG), piece))
        if length(source[me]):
            into[self._at(source[me], in_range)] = out[self._at(to[me], out_range)]
        for request, range_, piece in arrivals:  # in the order of ranks: the same bits each time
            request.Wait()
            if add:
                into[self._at(range_, in_range)] += piece
            else:
                into[self._at(range_, in_range)] = piece
        for request, _ in sent:
            request.Wait()

    def _at(self, range_: Range, within: Range) -> tuple:
        return (slice(None),) * self.axis + (slice(range_[0] - within[0], range_[1] - within[0]),)


def overlap(one: Range, other: Range) -> Range:
    """What two ranges have in common; empty ranges are (0, 0)."""
    a, b = max(one[0], other[0]), min(one[1], other[1])
    return (a, b) if a < b else (0, 0)


def length(range_: Range) -> int:
    """How many elements a range has."""
    return range_[1] - range_[0]


# --- where the layers of a network lie, when each of them is cut among ranks ----------------------

FEATURES, ROWS = 1, 2  # axes of (N,C,H,W)
CUTS = {
    "features": "each rank a share of the filters and outputs",
    "pixels": "each rank some rows of the maps, and a halo",
}


class Cut(NamedTuple):
    """How ranks share a layer: along which axis of its output, and which range each has."""

    axis: int
    ranges: list[Range]


def cuts(network: Network, size: int, by: str) -> list[Cut]:
    """How `size` ranks share each layer, by "features" or by "pixels": rows of maps.

    Fully connected layers are shared by features either way. ValueError for a network that is not
    a sequence, and for one with Pad by pixels.
    """
    one_of("cut", by, CUTS)
    network.check_sequence()
    if by == "pixels" and any(isinstance(place.layer, Pad) for place in network.places):
        raise ValueError("cut: expected features where a network has Pad, got pixels")
    result = []
    for place in network.places:
        axis = ROWS if by == "pixels" and len(place.shape) == 3 else FEATURES
        n = place.shape[axis - 1]
        result.append(Cut(axis, [block(rank, size, n) for rank in range(size)]))
    return result


def needed(place: Place, axis: int, range_: Range) -> Range:
    """What a rank needs of a layer's input, along the axis on which that is cut, for its output.

    Windows of K rows reach K − 1 rows further: the halo. Convolutions and fully connected layers
    need every feature, all others their own alone.
    """
    layer, (a, b) = place.layer, range_
    if a == b:
        return 0, 0
    if isinstance(layer, Dense) or (axis == FEATURES and isinstance(layer, Conv)):
        return 0, place.input_shape[axis - 1]
    if axis == ROWS and isinstance(layer, Conv):
        return a, b + layer.kernel - 1
    if axis == ROWS and isinstance(layer, Pool):
        return a * layer.stride, (b - 1) * layer.stride + layer.size
    return a, b


def inputs(network: Network, size: int, by: str) -> list[tuple[int, list[Range], list[Range]]]:
    """The axis along which each layer's input is cut, what `size` ranks own of it, and need.

    It is cut as the output below it, see `cuts`; of the images a rank owns what it needs.
    """
    result, of_all = [], cuts(network, size, by)
    for i, place in enumerate(network.places):
        axis = ROWS if by == "pixels" and len(place.input_shape) == 3 else FEATURES
        wanted = [needed(place, axis, range_) for range_ in of_all[i].ranges]
        result.append((axis, of_all[i - 1].ranges if i else wanted, wanted))
    return result


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
        travels = inputs(network, comm.size, by)
        self.axis = [cut.axis for cut in of_all]
        self.mine = [cut.ranges[comm.rank] for cut in of_all]
        self.exchanges = {}
        for i in range(start, stop):
            axis, owned, wanted = travels[i]
            if i:
                self.exchanges[i] = Exchange(comm, owned, wanted, axis)
            else:  # every rank has the images
                self.window = (slice(None),) * axis + (slice(*wanted[comm.rank]),)
        n = network.classes
        self.outputs = Exchange(comm, of_all[-1].ranges, [(0, n)] * comm.size, FEATURES)
        self.positions, self.shapes, self.shared = self._find_parameters()

    def _find_parameters(self) -> tuple[np.ndarray, list, list[slice]]:
        """Positions of this rank's parameters, their layers and shapes, and which are shared."""
        n_all = self.network.zeros().flat.size
        all_positions = Parameters(self.network, flat=np.arange(n_all))
        positions, result, shared, n = [np.empty(0, np.int64)], [], [], 0
        for i in range(self.start, self.stop):
            place = self.places[i]
            for name in place.layer.parameter_shapes(place.input_shape):
                mine = getattr(all_positions, f"{place.name}_{name}")
                if self.axis[i] == FEATURES:
                    mine = mine[slice(*self.mine[i])]
                else:
                    shared.append(slice(n, n + mine.size))
                positions.append(mine.reshape(-1))
                result.append((i, mine.shape))
                n += mine.size
        return np.concatenate(positions), result, shared

    def hold(self, flat: np.ndarray, sums: np.ndarray) -> None:
        """Take `flat` as the parameters, as `positions` orders them; gradients go to `sums`."""
        self.weights: dict[int, tuple] = {}
        self.grads: dict[int, tuple] = {}
        self.sums, n = sums, 0
        for i, shape in self.shapes:
            for views, group in ((self.weights, flat), (self.grads, sums)):
                views[i] = (*views.get(i, ()), group[n : n + prod(shape)].reshape(shape))
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
                    layer_forward(self.strategy, self.places[i], self.weights.get(i, ()), [x], y)
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
                    layer_backward(self.strategy, self.places[i], weights, (), [x], y, dy, [dx])
            dy = self.exchanges[i].give_back(dx)
        return (dy if self.start > first else None), of_outputs

    def add_gradients(self, kept: Kept, of_outputs: dict) -> None:
        """Add the gradients of the weights, of which `backward` found what they need."""
        for i, dy in of_outputs.items():
            if i in self.grads and dy.size:
                (x, y), result = kept[i - self.start], [np.empty_like(g) for g in self.grads[i]]
                with self.strategy.lock:
                    layer_backward(self.strategy, self.places[i], (), result, [x], y, dy, [None])
                for total, grad in zip(self.grads[i], result, strict=True):
                    total += grad

    def add_shared(self) -> None:
        """Add up the gradients of weights that all ranks have."""
        for where in self.shared:
            mine = self.sums[where].copy()
            self.comm.Allreduce(mine, self.sums[where])
