"""Trials say what a way to train finds, holds, sends and takes; the same each time."""

import functools

import numpy as np
import pytest

from cnnlab.distributed import trial
from cnnlab.distributed.trial import CALL, RATE, Charged
from cnnlab.kernels import KERNELS
from cnnlab.network import LENET5, Network
from cnnlab.ranks.virtual import World

N = 4 * LENET5.parameters().flat.size


def parameters(n_ranks, way, **options):
    program = functools.partial(trial.parameters, way=way, network="lenet5", batch=8, **options)
    return World(n_ranks).run(program)


def test_every_rank_has_the_parameters_of_the_uncut_network():
    uncut = parameters(1, "alone")[0]
    assert abs(uncut - LENET5.parameters().flat).max() > 1e-4
    for params in parameters(3, "layers"):
        np.testing.assert_allclose(params, uncut, atol=1e-5)


def test_what_is_held_is_counted():
    alone = trial.held(1, "data", "lenet5", optimizer="adam")[0]
    assert alone == {"parameters": N, "gradients": N, "optimizer": 2 * N + 8}
    shares = trial.held(7, "sharded", "lenet5", optimizer="adam")
    sums = {name: sum(own[name] for own in shares) for name in alone}
    assert sums == {"parameters": N, "gradients": N, "optimizer": 2 * N + 7 * 8}
    assert max(own["parameters"] for own in shares) < N / 7 + 4 * 5


def test_the_bytes_of_one_step_are_counted_by_pair():
    allreduce = trial.sent(2, "data", "lenet5", batch=8)
    assert allreduce.tolist() == [[0, N], [N, 0]]
    assert trial.sent(4, "sharded", "lenet5", batch=8).sum() == 3 * 3 * N
    stages = trial.sent(4, "pipeline", "lenet5", batch=8)
    assert {tuple(pair) for pair in np.argwhere(stages)} == {
        *((0, 1), (1, 2), (2, 3)),
        *((1, 0), (2, 1), (3, 2)),
    }


def test_virtual_seconds_are_the_same_each_time_and_follow_the_network():
    how = {"net": "lenet5", "batch": 16}
    times = [trial.virtual_seconds(2, "10us,1GB/s", "data", **how) for _ in range(2)]
    assert times[0] == times[1]
    assert trial.virtual_seconds(2, "10us,10MB/s", "data", **how) > times[0] + N / 10e6 / 2
    assert trial.virtual_seconds(1, None, "alone", **how) == pytest.approx(2 * times[0], rel=0.3)


def test_a_rank_is_charged_for_its_blocks_alone():
    how = {"net": "lenet5", "batch": 32}
    alone = trial.virtual_seconds(1, None, "alone", **how)
    at_once = trial.virtual_seconds(2, "1ns,1000GB/s", "layers", **how)
    assert alone / 2 < at_once < 0.6 * alone


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


def test_steps_in_a_row_are_counted_together_and_timed_as_a_mean():
    how = {"batch": 8, "every": 4}
    assert trial.sent(2, "local", "lenet5", in_a_row=4, **how).tolist() == [[0, N], [N, 0]]
    assert trial.sent(2, "local", "lenet5", in_a_row=2, **how).sum() == 0

    def seconds(in_a_row):
        def program(comm):
            own = trial.Trial(comm, "local", "lenet5", **how)
            return own.seconds(1, in_a_row)[0]

        return World(2, "1ms,1GB/s").run(program)[0]

    barrier = 8 * (seconds(4) - seconds(8))  # one for all steps of a sample
    assert barrier == pytest.approx(1e-3 + 1e-6, rel=0.01)
