"""A network as data that compiled code reads: its programme, a row for each layer.

A row says what the layer does, where its arrays lie in the flat parameters and in a worker's memory
(so it may read the output of any row before it, and several may read the same: their gradients are
added), and which records of `lanes.Tables` its kernels follow.
"""

import functools
from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.kernels.lanes import (  # isort: skip
    ADDED, BIASED, BROAD, COLUMNS_OF, FRESH, LINEAR, PADDING, RELU, SIGMOID, SINGLE, SQUARE, TALL,
    WIDE, Tables,
)  # fmt: skip
from cnnlab.kernels.registers import BROAD_ROWS, LANES, ROWS, WIDE_ROWS
from cnnlab.network.layers import Add, Concat, Moving, Pad

MOVE, CONV, POOL, MAX_POOL, DENSE = range(5)  # MOVE: also what an elementwise layer begins with
KINDS = {"conv": CONV, "pool": POOL, "max_pool": MAX_POOL, "dense": DENSE}
ACTIVATIONS = {"relu": RELU, "sigmoid": SIGMOID}
# A layer of a programme, of kind and activation; C, H, W, F, P, Q, K, S as in the contract. Its
# arrays begin at these numbers of a worker's memory: input x, output y, dy, dz, dx (-1: not wanted)
# and rows of x; w and b are in the parameters, or `fixed` in the memory (w = -1: there are none).
# Gradients of n_sums parameters, `into` which they go in the end, and of the bias from `db` on, are
# added up lane by lane in `sums`.
# It is done `times` times, each with arrays that lie a step further. `added`: dx is, and `summed`:
# y is; `exact`: windows cover each pixel once; `last`: dy is dz. What is `ready` has its dz in y,
# where a pooling has written it `over`, gone `through` the activation below it and added to the
# bias `bias_over`. The others are records and tables of `lanes`; those of `one_` are for one vector
# of images, where the others of a fully connected layer are for both.
FIELDS = (
    "kind activation C H W F P Q K S x y dy dz dx rows w b fixed sums n_sums into db times x_step "
    "y_step w_step b_step added summed exact last ready over through bias_over forward back "
    "weights tail one_weights one_tail maps pixels windows taps"
)
ROW = np.dtype([(name, np.int64) for name in FIELDS.split()])


class Programme(NamedTuple):
    """A network as compiled code reads it: ROWs of layers, tables, and the size of the memory.

    `constants` are numbers in that memory: where they begin, and the array. `by_pixels`: a step of
    few images can be taken by the contract's functions, see `few`.
    """

    layers: np.ndarray
    tables: np.ndarray
    size: int
    n_sums: int
    constants: list[tuple[int, np.ndarray]]
    by_pixels: bool


@functools.lru_cache(maxsize=64)
def programme(network) -> Programme:
    """The programme of a network."""
    return Writer(network).programme


class Writer:
    """Writes the programme of a network, layer by layer."""

    def __init__(self, network):
        self.tables, self.size, self.n_sums, self.constants, rows = Tables(), 0, 0, [], []
        self.offsets = dict(zip(network.parameter_shapes, starts(network), strict=True))
        places, readers = network.places, Counter(s for p in network.places for s in p.sources)
        shapes = [*(place.shape for place in places), network.image_shape]  # source −1: the image
        arrays, left = {-1: (self.room(*network.image_shape), -1)}, readers.copy()  # y and dy
        for i, place in enumerate(places):
            if i in arrays:  # an activation that is done with the layer before it
                continue
            room, begin = functools.partial(self.room, *place.shape), 0
            arrays[i] = room(), room() if network.learning[i] else -1
            for source in place.sources:
                row = np.zeros(1, ROW).view(np.recarray)[0]
                row.kind = KINDS.get(place.layer.operation, MOVE)
                row.activation = ACTIVATIONS.get(place.layer.operation, LINEAR)
                # Not after the largest number of a window, which must be found again.
                if row.kind not in (MOVE, MAX_POOL) and readers[i] == 1:
                    after = places[i + 1]
                    if after.sources == (i,) and after.layer.operation in ACTIVATIONS:
                        row.activation = ACTIVATIONS[after.layer.operation]
                        arrays[i + 1] = arrays[i]
                (row.x, row.dx), (row.y, row.dy) = arrays[source], arrays[i]
                left[source] -= 1
                row.added, row.over, row.bias_over = left[source] > 0, -1, -1
                self.write(row, place, shapes[source], begin)
                row.dz = row.dz or row.dy
                alone = row.kind in (POOL, MAX_POOL) and row.exact and readers[source] == 1
                for below in (r for r in rows if alone and r.y == row.x):
                    if below.kind == CONV and below.dx < 0:
                        row.over, row.through, row.bias_over = below.y, below.activation, below.db
                        below.ready = True
                rows.append(row)
                begin += prod(shapes[source])
        rows[-1].last = True
        for row in rows:
            if row.kind == DENSE:  # at last, when it is known where the second vector's arrays lie
                self.dense(row, np.array([0, self.size]))
        layers = np.array(rows, ROW)
        by_pixels = all(
            not isinstance(place.layer, Moving) and getattr(place.layer, "side_by_side", True)
            for place in places
        )
        self.programme = Programme(
            layers, self.tables.flat, self.size, self.n_sums, self.constants, by_pixels
        )

    def room(self, *shape) -> int:
        """Where in the memory an array begins that has such a shape in every lane."""
        first = self.size
        self.size += -(-prod(shape) * LANES // PADDING) * PADDING
        return first

    def write(self, row, place, shape, begin) -> None:
        """A row for one input of a layer, of this shape, of a concatenation from `begin` on."""
        layer = place.layer
        (C, H, W), (F, P, Q) = maps_of(shape), maps_of(place.shape)
        if row.kind == DENSE:
            C, H, W = prod(shape), 1, 1
        row.C, row.H, row.W, row.F, row.P, row.Q = C, H, W, F, P, Q
        row.K = getattr(layer, "kernel", getattr(layer, "size", 1))
        row.S = getattr(layer, "stride", 1)
        row.exact = row.kind in (MOVE, CONV, DENSE) or (
            row.K == row.S and not (H % row.S or W % row.S)
        )
        row.times = 1
        row.w = self.offsets.get(f"{place.name}_w", -1)
        row.b = self.offsets.get(f"{place.name}_b", -1)
        if row.w >= 0:  # a fully connected layer's weights are not added up in lanes, see `dense`
            row.into = row.b if row.kind == DENSE else row.w
            row.n_sums, row.sums = row.b + F - row.into, self.n_sums
            row.db = row.sums + (row.b - row.into) * LANES
            self.n_sums += row.n_sums * LANES
        maps, pixels = grid(F, P * Q), grid(P * Q, 1)
        if row.kind == CONV:
            maps, pixels = self.conv(row, maps, pixels)
        elif row.kind in (POOL, MAX_POOL):
            self.pool(row, pixels)
        elif row.kind == DENSE:
            row.rows = self.room(row.C)
        else:
            self.move(row, layer, begin)
        row.maps, row.pixels = self.tables.add(maps), self.tables.add(pixels)

    def move(self, row, layer, begin) -> None:
        """Where in its output each number of an input goes."""
        c, h, w = np.unravel_index(np.arange(row.C * row.H * row.W), (row.C, row.H, row.W))
        width = layer.width if isinstance(layer, Pad) else 0
        places = (c * row.P + h + width) * row.Q + w + width
        if isinstance(layer, Concat):
            places += begin
        row.summed = isinstance(layer, Add) and begin > 0
        row.windows, row.taps = self.tables.add(places * LANES), self.tables.add([0])

    def conv(self, row, maps, pixels):
        """A convolution's records; where the maps and pixels of dz lie.

        If dx is wanted, dz has a border of zeros (and zeros between, if there is a stride), and dx
        is a convolution of it with filters turned round; terms in the upper and lower border, which
        come first and last, are skipped.
        """
        C, H, W, F, P, Q, K, S = (int(row[name]) for name in "CHWFPQKS")
        p, q = np.divmod(np.arange(P * Q), Q)
        windows, terms = grid_of(p * S, q * S, W), np.arange(C * K * K)
        c, k, l = np.unravel_index(terms, (C, K, K))
        taps, filters = grid_of(c * H + k, l, W), np.arange(F) * terms.size
        wide, broad = shape_for(F, WIDE, WIDE_ROWS), shape_for(C, BROAD, BROAD_ROWS)
        row.forward = self.tables.product(
            wide, (filters, terms), (windows, taps), (maps, pixels),
            start=BIASED, activation=row.activation,
        )  # fmt: skip
        if row.dx >= 0:
            columns = W + K - 1
            apart = (H + K - 1) * columns | 1  # odd: else maps may meet in a few sets of a cache
            row.dz = self.room(F, apart)
            maps, pixels = grid(F, apart), grid_of(K - 1 + p * S, K - 1 + q * S, columns)
            h, w = together(H, W, COLUMNS_OF[broad])
            k, l, f = np.unravel_index(np.arange(K * K * F), (K, K, F))
            useful = [
                bound
                for i, n in ((h, P), (w, Q))
                for bound in (np.clip(i - (n - 1) * S, 0, K - 1), np.clip(i, 0, K - 1) + 1)
            ]
            row.back = self.tables.product(
                broad,
                (np.arange(C) * K * K, (f * C * K + k) * K + l),
                (grid_of(h + K - 1, w + K - 1, columns), grid_of(-k, f * apart - l, columns)),
                (grid(C, H * W), grid_of(h, w, W)),
                (K * F, useful[0], useful[1], useful[2] * F, useful[3] * F),
                start=ADDED if row.added else FRESH,
            )
        dw = filters * LANES, terms * LANES
        row.weights = self.tables.sums(wide, (maps, pixels), (taps, windows), dw)
        return maps, pixels

    def pool(self, row, pixels) -> None:
        """What a pooling needs for one map at a time; an average has weights that are fixed.

        If it alone reads a convolution whose input wants no gradient, and reads each pixel once, it
        writes the gradient over what it has read, taken through the activation.
        """
        C, H, W, P, Q, K, S = (int(row[name]) for name in "CHWPQKS")
        p, q = np.divmod(np.arange(P * Q), Q)
        terms = np.arange(K * K)
        windows, taps = grid_of(p * S, q * S, W), grid_of(*np.divmod(terms, K), W)
        row.windows, row.taps = self.tables.add(windows), self.tables.add(taps)
        row.times, row.x_step, row.y_step = C, H * W * LANES, P * Q * LANES
        if row.kind == MAX_POOL:
            return
        row.w_step, row.b_step = K * K, 1
        row.forward = self.tables.product(
            SINGLE, ([0], terms), (windows, taps), ([0], pixels), start=BIASED
        )
        row.weights = self.tables.sums(SINGLE, ([0], pixels), (taps, windows), ([0], terms * LANES))
        if row.w < 0:
            row.fixed, row.w, row.b = True, self.room(C * K * K), self.room(C)
            self.constants.append((row.w, np.full(C * K * K, 1 / K**2, np.float32)))

    def dense(self, row, both) -> None:
        """A fully connected layer's records, for `both` vectors of images: weights are read once.

        `tail` does the last inputs, which fill no vector; gradients of the weights have records for
        one vector of images, too.
        """
        D, O, add = int(row.C), int(row.F), self.tables.product
        inputs, outputs, lanes_of = np.arange(D), np.arange(O), np.arange(LANES)
        row.forward = add(
            TALL, (outputs * D, inputs), (both, grid(D, 1)), (grid(O, 1), both),
            start=BIASED, activation=row.activation,
        )  # fmt: skip
        row.back = add(
            TALL, (inputs, outputs * D), (both, grid(O, 1)), (grid(D, 1), both),
            start=ADDED if row.added else FRESH,
        )  # fmt: skip
        columns, last = grid(D // LANES, 1), [D - LANES]
        for vectors, weights, tail in (
            (both, "weights", "tail"),
            (both[:1], "one_weights", "one_tail"),
        ):
            dz = grid(O, 1), np.add.outer(vectors, lanes_of).ravel()
            images = np.add.outer(vectors, lanes_of * D).ravel()
            if D >= LANES:
                row[weights] = add(
                    SQUARE, dz, (columns, images), (outputs * D, columns), start=ADDED
                )
            if D >= LANES and D % LANES:
                row[tail] = add(
                    SINGLE, dz, (last, images), (outputs * D, last),
                    start=ADDED, skip=LANES - D % LANES,
                )  # fmt: skip


def starts(network) -> list[int]:
    """Where in the flat parameters each array begins."""
    sizes = [prod(shape) for shape in network.parameter_shapes.values()]
    return [sum(sizes[:i]) for i in range(len(sizes))]


def maps_of(shape):
    """A shape of one image as that of maps."""
    return shape if len(shape) == 3 else (prod(shape), 1, 1)


def grid(n, step):
    """Where n vectors begin that lie so many vectors apart."""
    return np.arange(n) * step * LANES


def grid_of(rows, columns, width):
    """Where the vectors in these rows and columns begin, of maps so wide."""
    return (rows * width + columns) * LANES


def together(height, width, n):
    """Rows and columns of all pixels of a map, so that n of them that follow each other are near.

    Four are two by two: near a border they then have more useless terms in common.
    """
    h, w = np.divmod(np.arange(height * width), width)
    if n == 4:
        order = np.lexsort((w % 2, h % 2, w // 2, h // 2))
        h, w = h[order], w[order]
    return h, w


def shape_for(n_rows, other, its_rows):
    """How to divide so many rows: SQUARE, unless the other shape leaves fewer over."""
    return other if -(-n_rows // its_rows) * its_rows < -(-n_rows // ROWS) * ROWS else SQUARE
