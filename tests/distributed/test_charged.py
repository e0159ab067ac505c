"""Kernels on a clock: what they compute is what it was, and time passes by their work alone."""

import numpy as np
import pytest

from cnnlab.distributed.trial import CALL, RATE, Charged, work
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks.virtual import World

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.random(shape).astype(np.float32)


@pytest.mark.parametrize(
    "name, shapes, expected",
    [
        ("conv_forward", [(2, 3, 6, 6), (4, 3, 3, 3), (4,), (2, 4, 4, 4)], 2 * 4 * 16 * 27),
        ("conv_backward_input", [(2, 4, 4, 4), (4, 3, 3, 3), (2, 3, 6, 6)], 2 * 4 * 16 * 27),
        ("conv_backward_weights", [(2, 3, 6, 6), (2, 4, 4, 4), (4, 3, 3, 3)], 2 * 4 * 16 * 27),
        ("conv_backward_bias", [(2, 4, 4, 4), (4,)], 2 * 4 * 16),
        ("pool_forward", [(2, 3, 8, 8), (3, 4, 4), (3,), (2, 3, 2, 2)], 2 * 3 * 4 * 16),
        ("dense_forward", [(2, 7), (5, 7), (5,), (2, 5)], 2 * 5 * 7),
        ("relu", [(2, 3, 4, 4), (2, 3, 4, 4)], 96),
    ],
)
def test_work_is_multiply_adds_or_elements(name, shapes, expected):
    assert work(name, tuple(array(*shape) for shape in shapes)) == expected


def test_a_kernel_computes_and_takes_its_virtual_time():
    strategy, z = KERNELS["vector"], array(3, 4)

    def program(comm):
        y = np.empty_like(z)
        charged = Charged(strategy, comm)
        charged.kernel("relu")(z, y)
        assert charged.fused("loss_and_gradients", Network()) is None
        return y

    world = World(2, speed=(1, 3))
    for y in world.run(program):
        assert (y == np.maximum(z, 0)).all()
    assert world.clocks == pytest.approx([CALL + 12 / RATE, 3 * (CALL + 12 / RATE)])
