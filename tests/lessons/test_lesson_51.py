"""The challenge under a cap of workspace."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from cnnlab.kernels.variants.convolutions import WAYS, conv_forward_im2col
from cnnlab.lessons import lesson_51
from cnnlab.lessons.lesson_51 import (
    BUFFERS,
    MicroBatch,
    Split,
    allocated,
    challenge_workspace,
    front,
    pareto,
)
from cnnlab.measure import timing
from cnnlab.network import Conv, Dense, Network, ReLU, Sigmoid

PLACE = Network((Conv(6, 5), Dense(10), Sigmoid()), (8, 16, 16))["conv"]
PLANS = {"planned": Split((MicroBatch("vector", 5), MicroBatch("im2col", 3)), 1.0, 1)}
COLUMNS = 4 * 8 * 12**2 * (8 * 25 + 6)  # bytes: im2col of all eight images


def in_pairs(x, w, b, z):
    for first in range(0, len(x), 2):
        conv_forward_im2col(x[first : first + 2], w, b, z[first : first + 2])


def wrong(x, w, b, z):
    z[:] = 0


def test_a_kernel_under_the_cap_is_timed_beside_the_plans(capsys):
    ax = challenge_workspace("conv_forward", in_pairs, PLACE, PLANS, COLUMNS / 4, repeats=2)
    assert {"planned", "mine"} <= {label.get_text() for label in ax.get_yticklabels()}
    said = capsys.readouterr().out
    assert "bytes of workspace, where the cap is" in said and "times as long as planned." in said


@pytest.mark.parametrize(
    "mine, cap, said",
    [
        (wrong, 1e9, "not yet right"),
        (conv_forward_im2col, COLUMNS / 4, "✗ conv_forward: "),
        (..., 1e9, "the challenge is still open"),
    ],
)
def test_any_other_is_not(mine, cap, said, capsys):
    assert challenge_workspace("conv_forward", mine, PLACE, PLANS, cap) is None
    assert said in capsys.readouterr().out


def test_what_numpy_allocates_is_counted_at_its_peak():
    def kernel(x, z):
        for _ in range(3):
            z[:] = np.ones(2**20, np.float32)[0] + x

    assert 4 * 2**20 <= allocated(kernel, [np.zeros(5), np.empty(5)]) <= 4 * 2**20 + BUFFERS


OPERATIONS = ("conv_forward", "conv_backward_weights", "conv_backward_input")
NETWORK = Network((Conv(3, 3), ReLU(), Conv(2, 3), ReLU(), Dense(10), Sigmoid()), (2, 9, 8))


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
        assert whole.pieces == (MicroBatch(name, 4),) and whole.seconds == result.times[name][4]
        assert whole.workspace == result.workspaces[name][4]


def test_a_way_that_is_wrong_is_not_timed():
    def wrong(x, w, b, z):
        z[:] = 0

    algorithms = {name: WAYS[name] for name in ("vector", "im2col")}
    algorithms["im2col"] = dataclasses.replace(algorithms["im2col"], conv_forward=wrong)
    with pytest.raises(AssertionError, match=r"conv_forward by im2col\["):
        lesson_51.costs("conv_forward", NETWORK["conv1"], [2], algorithms=algorithms, repeats=1)


def test_a_sample_is_the_time_of_one_micro_batch(monkeypatch):
    seen = {}

    def compare(calls, repeats):
        for (name, size), call in calls.items():
            plan, images = call.args[1], len(call.args[2])
            assert plan.pieces == (MicroBatch(name, size),) * (images // size)
            seen[size] = images
        return {key: timing.Timing("", (len(c.args[1].pieces) * 1.0,)) for key, c in calls.items()}

    monkeypatch.setattr(timing, "compare", compare)
    result = lesson_51.costs("conv_backward_weights", NETWORK["conv1"], (1, 3, 16, 32))
    assert seen == {1: 16, 3: 15, 16: 16, 32: 32}
    assert {t for by_size in result.times.values() for t in by_size.values()} == {1.0}


def tables(rng, sizes=(1, 2, 3, 4)):
    """Random times and workspaces of three algorithms, some of which lack some sizes."""
    times, workspaces = {}, {}
    for name in ("direct", "im2col", "fourier"):
        offered = [size for size in sizes if rng.random() < 0.7] or [sizes[0]]
        times[name] = {size: float(rng.integers(1, 30)) for size in offered}
        workspaces[name] = {size: int(rng.integers(0, 10)) for size in offered}
    return times, workspaces


def every_plan(times, workspaces, n_images):
    """All ways to make up a batch, whatever they need; their order does not matter."""
    pieces = [MicroBatch(name, size) for name in times for size in times[name]]
    plans = []
    for n in range(1, n_images + 1):
        for chosen in itertools.combinations_with_replacement(pieces, n):
            if sum(size for _, size in chosen) == n_images:
                seconds = sum(times[name][size] for name, size in chosen)
                plans.append(Split(chosen, seconds, max(workspaces[a][m] for a, m in chosen)))
    return plans


@pytest.mark.parametrize("seed", range(20))
def test_the_front_holds_what_no_plan_beats(seed):
    times, workspaces = tables(np.random.default_rng(seed))
    plans, asked = every_plan(times, workspaces, 4), []

    def fastest(times, workspaces, n_images, cap):
        asked.append(n_images)
        fitting = [plan for plan in plans if plan.workspace <= cap]
        return min(fitting, key=lambda plan: plan[1:], default=None)

    costs = SimpleNamespace(times=times, workspaces=workspaces, n_images=4)
    unbeaten = {
        p[1:]
        for p in plans
        if not any(q[2] <= p[2] and q[1] <= p[1] and q[1:] != p[1:] for q in plans)
    }
    result = [p[1:] for p in front(costs, fastest)]
    assert set(result) == unbeaten == {p[1:] for p in pareto(plans)} and {*asked} == {4}
    assert result == sorted(result, key=lambda cost: cost[1])
