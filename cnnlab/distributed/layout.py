"""Where the layers of a network lie, when each of them is cut among ranks."""

from collections.abc import Sequence
from typing import NamedTuple

from cnnlab.distributed.exchange import Range
from cnnlab.network import Conv, Dense, Network, Place, Pool
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import one_of

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

    Fully connected layers are shared by features either way.
    """
    one_of("cut", by, CUTS)
    found = []
    for place in network.places:
        axis = ROWS if by == "pixels" and len(place.shape) == 3 else FEATURES
        n = place.shape[axis - 1]
        found.append(Cut(axis, [block(rank, size, n) for rank in range(size)]))
    return found


def input_axis(places: Sequence[Place], i: int, by: str) -> int:
    """The axis along which the input of layer i is cut: that of the output below it."""
    return ROWS if by == "pixels" and len(places[i].input_shape) == 3 else FEATURES


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
        return a * layer.size, b * layer.size
    return a, b


class Shares(NamedTuple):
    """A layer, cut: the length of its input along that axis, and who owns and needs what of it."""

    name: str
    length: int
    owned: list[Range]
    needed: list[Range]


def shares(network: Network, size: int, by: str) -> list[Shares]:
    """What each of `size` ranks owns of every layer's input, and needs; see `cuts`.

    Of the images every rank has all, and takes what it needs: it owns that.
    """
    found, of_all = [], cuts(network, size, by)
    for i, place in enumerate(network.places):
        axis = input_axis(network.places, i, by)
        wanted = [needed(place, axis, range_) for range_ in of_all[i].ranges]
        owned = of_all[i - 1].ranges if i else wanted
        found.append(Shares(place.name, place.input_shape[axis - 1], owned, wanted))
    return found
