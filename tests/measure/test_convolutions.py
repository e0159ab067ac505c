"""Costs of convolutions, and convolutions in micro-batches."""

import dataclasses

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.kernels.variants.convolutions import WAYS
from cnnlab.lessons import lesson_51
from cnnlab.lessons.lesson_51 import Piece, Plan
from cnnlab.measure import timing
from cnnlab.network import Conv, Dense, Network, ReLU, Sigmoid

OPERATIONS = ("conv_forward", "conv_backward_weights", "conv_backward_input")
NETWORK = Network((Conv(3, 3), ReLU(), Conv(2, 3), ReLU(), Dense(10), Sigmoid()), (2, 9, 8))
PLAN = Plan((Piece("im2col", 3), Piece("FFT", 2), Piece("vector", 1), Piece("Winograd", 1)), 1, 1)


def test_a_step_has_each_convolution_but_the_gradient_of_the_images():
    first, second = NETWORK["conv1"], NETWORK["conv2"]
    assert lesson_51.of_a_step(NETWORK) == {
        "conv1_forward": ("conv_forward", first),
        "conv2_forward": ("conv_forward", second),
        "conv1_backward_weights": ("conv_backward_weights", first),
        "conv2_backward_weights": ("conv_backward_weights", second),
        "conv2_backward_input": ("conv_backward_input", second),
    }


@pytest.mark.parametrize("operation", OPERATIONS)
def test_micro_batches_by_different_ways_give_what_the_batch_gives(operation):
    place = NETWORK["conv1"]
    arrays = lesson_51.arguments(operation, place, 7)
    exact = [array.astype(np.float64) for array in arrays]
    getattr(KERNELS["reference"], operation)(*exact)
    for output in (arrays[-1].copy(), np.full_like(arrays[-1], np.nan)):
        lesson_51.in_micro_batches(operation, PLAN, *arrays[:-1], output)
        timing.same(output, exact[-1], rtol=1e-4)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_costs_are_those_of_every_way_and_size(operation):
    place, sizes = NETWORK["conv2"], (1, 2, 4)
    result = lesson_51.costs(operation, place, sizes, repeats=1)
    assert result.n_images == 4 and list(result.times) == list(WAYS)
    for name, way in WAYS.items():
        assert list(result.times[name]) == list(sizes)
        for size in sizes:
            assert result.times[name][size] == result.timings[name][size].median
            said = way.workspace(operation, size, 3, 2, 7, 6, 3)
            more = 4 * 2 * 3 * 3 * 3 if operation == "conv_backward_weights" and size < 4 else 0
            assert result.workspaces[name][size] == said + more
        whole = result.whole[name]
        assert whole.pieces == (Piece(name, 4),) and whole.seconds == result.times[name][4]
        assert whole.workspace == result.workspaces[name][4]
    assert all(sum(piece.n_images for piece in plan.pieces) == 4 for plan in result.front)
    assert min(p.seconds for p in result.front) <= min(p.seconds for p in result.whole.values())


def test_a_way_that_is_wrong_is_not_timed():
    def wrong(x, w, b, z):
        z[:] = 0

    algorithms = {name: WAYS[name] for name in ("vector", "im2col")}
    algorithms["im2col"] = dataclasses.replace(algorithms["im2col"], conv_forward=wrong)
    with pytest.raises(AssertionError, match="conv_forward by im2col: "):
        lesson_51.costs("conv_forward", NETWORK["conv1"], [2], algorithms=algorithms, repeats=1)


def test_a_step_computes_each_convolution_as_planned(monkeypatch):
    called = []
    note = lambda operation, plan, *arrays: called.append((operation, plan, len(arrays[0])))  # noqa: E731
    monkeypatch.setattr(lesson_51, "in_micro_batches", note)
    plans = {name: PLAN._replace(seconds=k) for k, name in enumerate(NETWORK.multiply_adds)}
    lesson_51.step_call(NETWORK, plans)()
    asked = lesson_51.of_a_step(NETWORK)
    assert called == [(operation, plans[name], 7) for name, (operation, _) in asked.items()]


def test_a_sample_is_the_time_of_one_micro_batch(monkeypatch):
    seen = {}

    def compare(calls, repeats):
        for (name, size), call in calls.items():
            plan, images = call.args[1], len(call.args[2])
            assert plan.pieces == (Piece(name, size),) * (images // size)
            seen[size] = images
        return {key: timing.Timing("", (len(c.args[1].pieces) * 1.0,)) for key, c in calls.items()}

    monkeypatch.setattr(timing, "compare", compare)
    result = lesson_51.costs("conv_backward_weights", NETWORK["conv1"], (1, 3, 16, 32))
    assert seen == {1: 16, 3: 15, 16: 16, 32: 32}
    assert {t for by_size in result.times.values() for t in by_size.values()} == {1.0}
