"""A piece of a network gives what the whole one gives."""

import numpy as np
import pytest

from cnnlab.distributed.model import Piece
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import composed, forward
from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Network, Pool, ReLU, Sigmoid
from cnnlab.ranks.virtual import World

REFERENCE = KERNELS["reference"]
# Windows that leave rows over, fixed weights, and a layer below the first that learns.
MIXED = Network(
    (
        *(MaxPool(2), Conv(3, 2), ReLU(), AveragePool(2), Conv(5, 3), Pool(2), Sigmoid()),
        *(Dense(4), Sigmoid()),
    ),
    (2, 19, 23),
)
RNG = np.random.default_rng(0)
X, LABELS = RNG.random((3, 2, 19, 23)), np.array([0, 3, 1])


def whole():
    params, grads = MIXED.parameters(0, np.float64), MIXED.zeros(np.float64)
    return composed(REFERENCE, params, X, LABELS, grads), params, grads


@pytest.mark.parametrize("by", ["features", "pixels"])
@pytest.mark.parametrize("n", range(1, 10))
def test_the_gradients_of_all_ranks_are_those_of_the_uncut_network(by, n):
    loss, params, grads = whole()

    def program(comm):
        piece = Piece(MIXED, REFERENCE, 0, len(MIXED.places), comm, by)
        flat = params.flat[piece.positions]
        piece.hold(flat, np.zeros_like(flat))
        y, kept = piece.forward(X)
        loss, dy = piece.loss(y, LABELS)
        dx, of_outputs = piece.backward(kept, dy)
        piece.add_gradients(kept, of_outputs)
        piece.add_shared()
        assert dx is None and piece.axis[0] == {"features": 1, "pixels": 2}[by]
        return loss, piece.positions, piece.sums

    result = np.full_like(grads.flat, np.nan)
    ranks = World(n).run(program)
    for _, positions, sums in ranks:
        result[positions] = sums
    np.testing.assert_allclose(result, grads.flat, rtol=1e-9, atol=1e-12)
    assert sum(own for own, *_ in ranks) == pytest.approx(loss, rel=1e-12)


def test_by_features_no_parameter_is_held_twice_by_pixels_every_filter():
    def program(comm, by):
        return Piece(MIXED, REFERENCE, 0, len(MIXED.places), comm, by).positions

    n = MIXED.parameters().flat.size
    apart, shared = (World(3).run(program, by) for by in ("features", "pixels"))
    assert sorted(np.concatenate(apart)) == list(range(n))
    dense = MIXED.parameter_shapes["dense_w"][1] + 1
    assert all(n - 4 * dense <= len(positions) < n for positions in shared)


def test_pieces_one_after_the_other_are_the_network():
    _, params, _ = whole()

    def program(comm):
        x = X
        for start, stop in ((0, 4), (4, 9)):
            piece = Piece(MIXED, REFERENCE, start, stop, comm, "features")
            flat = params.flat[piece.positions]
            piece.hold(flat, np.zeros_like(flat))
            x, _ = piece.forward(x)
        return x

    y = np.concatenate(World(2).run(program), axis=1)
    np.testing.assert_allclose(y, forward(REFERENCE, params, X)["dense_sigmoid"], rtol=1e-12)
