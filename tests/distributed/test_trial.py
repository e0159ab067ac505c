"""Trials find what a way to train finds, and take virtual time; the same each time."""

import numpy as np
import pytest

from cnnlab.distributed.trial import CALL, RATE, Charged, Trial
from cnnlab.kernels import KERNELS
from cnnlab.network import LENET5, Network
from cnnlab.ranks.virtual import World


def test_every_rank_has_the_parameters_of_the_uncut_network():
    def program(comm, way):
        one = Trial(comm, way, "lenet5", batch=8)
        one.step()
        return one.replica.params.flat

    uncut = World(1).run(program, "alone")[0]
    assert abs(uncut - LENET5.parameters().flat).max() > 1e-4
    for params in World(3).run(program, "layers"):
        np.testing.assert_allclose(params, uncut, atol=1e-5)


def seconds(n_ranks, link, way, in_a_row=1, **options):
    """Virtual seconds of a step, its kernels charged for by the model."""

    def program(comm):
        kernels = Charged(KERNELS["vector"], comm)
        one = Trial(comm, way, "lenet5", batch=32, kernels=kernels, **options)
        return one.seconds(1, in_a_row)[0]

    return World(n_ranks, link).run(program)[0]


def test_a_rank_is_charged_for_its_blocks_alone_the_same_each_time():
    alone, at_once, again = (
        seconds(n, "1ns,1000GB/s", way) for n, way in ((1, "alone"), (2, "layers"), (2, "layers"))
    )
    assert alone / 2 < at_once < 0.6 * alone and at_once == again


@pytest.mark.parametrize(
    "name, shapes, work",  # multiply-adds, or elements
    [
        ("conv_forward", [(2, 3, 6, 6), (4, 3, 3, 3), (4,), (2, 4, 4, 4)], 2 * 4 * 16 * 27),
        ("conv_backward_weights", [(2, 3, 6, 6), (2, 4, 4, 4), (4, 3, 3, 3)], 2 * 4 * 16 * 27),
        ("conv_backward_bias", [(2, 4, 4, 4), (4,)], 2 * 4 * 16),
        ("pool_forward", [(2, 3, 8, 8), (3, 4, 4), (3,), (2, 3, 2, 2)], 2 * 3 * 4 * 16),
        ("dense_forward", [(2, 7), (5, 7), (5,), (2, 5)], 2 * 5 * 7),
        ("relu", [(2, 3, 4, 4), (2, 3, 4, 4)], 96),
    ],
)
def test_a_kernel_computes_and_takes_its_virtual_time(name, shapes, work):
    arrays = [np.random.default_rng(0).random(shape, np.float32) for shape in shapes]
    expected = [array.copy() for array in arrays]
    KERNELS["vector"].kernel(name)(*expected)

    def program(comm):
        charged, own = Charged(KERNELS["vector"], comm), [array.copy() for array in arrays]
        charged.kernel(name)(*own)
        assert charged.fused("loss_and_gradients", Network()) is None
        np.testing.assert_array_equal(own[-1], expected[-1])

    world = World(2, speed={1: 3})
    world.run(program)
    assert world.clocks == pytest.approx([CALL + work / RATE, 3 * (CALL + work / RATE)])


def test_steps_in_a_row_are_timed_as_a_mean():
    four, eight = (seconds(2, "1ms,1GB/s", "local", n, every=4) for n in (4, 8))
    barrier = 8 * (four - eight)  # one for all steps of a sample
    assert barrier == pytest.approx(1e-3 + 1e-6, rel=0.01)
