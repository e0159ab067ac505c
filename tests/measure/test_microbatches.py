"""Planners of micro-batches, against trying everything."""

import itertools
import math

import numpy as np
import pytest

from cnnlab.lessons.lesson_51 import Piece, Plan, fastest, front, pareto, share_the_cap


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
    pieces = [Piece(name, size) for name in times for size in times[name]]
    plans = []
    for n in range(1, n_images + 1):
        for chosen in itertools.combinations_with_replacement(pieces, n):
            if sum(size for _, size in chosen) == n_images:
                seconds = sum(times[name][size] for name, size in chosen)
                plans.append(Plan(chosen, seconds, max(workspaces[a][m] for a, m in chosen)))
    return plans


def worth(plans):
    return sorted({(plan.workspace, plan.seconds) for plan in plans})


@pytest.mark.parametrize("seed", range(30))
def test_the_fastest_is_that_of_all_plans(seed):
    rng = np.random.default_rng(seed)
    times, workspaces = tables(rng)
    n_images, cap = int(rng.integers(1, 6)), int(rng.integers(0, 10))
    fitting = [p for p in every_plan(times, workspaces, n_images) if p.workspace <= cap]
    plan = fastest(times, workspaces, n_images, cap)
    assert (plan is None) == (not fitting)
    if fitting:
        assert plan.seconds == min(p.seconds for p in fitting)
        assert sum(size for _, size in plan.pieces) == n_images
        assert plan.seconds == sum(times[name][size] for name, size in plan.pieces)
        assert plan.workspace == max(workspaces[name][size] for name, size in plan.pieces) <= cap


@pytest.mark.parametrize("by_size", [{1: 1.0, 2: 2.0}, {2: 2.0, 1: 1.0}])
def test_of_equally_fast_plans_the_smaller_is_taken(by_size):
    times, workspaces = {"a": by_size}, {"a": {1: 5, 2: 9}}
    assert fastest(times, workspaces, 4) == Plan((Piece("a", 1),) * 4, 4.0, 5)


def test_without_a_cap_everything_is_allowed_and_just_the_cap_is_room():
    times, workspaces = {"a": {4: 1.0}, "b": {4: 2.0}}, {"a": {4: 100}, "b": {4: 1}}
    assert fastest(times, workspaces, 4).pieces == (Piece("a", 4),)
    assert fastest(times, workspaces, 4, cap=100).pieces == (Piece("a", 4),)
    assert fastest(times, workspaces, 4, cap=99).pieces == (Piece("b", 4),)
    assert fastest(times, workspaces, 4, cap=0) is fastest(times, workspaces, 3) is None


@pytest.mark.parametrize("n_images", [0, -1, 2.5])
def test_a_batch_has_images(n_images):
    with pytest.raises(ValueError, match="n_images: expected a whole number of at least 1"):
        fastest({"a": {1: 1.0}}, {"a": {1: 1}}, n_images)


@pytest.mark.parametrize("seed", range(20))
def test_the_front_holds_what_no_plan_beats(seed):
    times, workspaces = tables(np.random.default_rng(seed))
    plans = every_plan(times, workspaces, 4)
    unbeaten = [
        p
        for p in plans
        if not any(
            q.workspace <= p.workspace and q.seconds <= p.seconds and q[1:] != p[1:] for q in plans
        )
    ]
    result = front(times, workspaces, 4)
    assert [(p.workspace, p.seconds) for p in result] == worth(unbeaten) == worth(pareto(plans))


def test_a_plan_says_what_it_does():
    plan = Plan((Piece("im2col", 32), Piece("direct", 8), Piece("im2col", 32)), 1.0, 1)
    assert str(plan) == "2 × 32 by im2col + 1 × 8 by direct"


def points(rng, n):
    """Plans of a layer that differ in time and workspace."""
    return [Plan((), float(rng.random()), int(rng.integers(0, 10**7))) for _ in range(n)]


def enumerated(fronts, cap):
    """The least seconds of one plan a layer under the cap; inf if there is none."""
    fitting = (
        sum(plan.seconds for plan in plans)
        for plans in itertools.product(*fronts.values())
        if sum(plan.workspace for plan in plans) <= cap
    )
    return min(fitting, default=math.inf)


@pytest.mark.parametrize("seed", range(20))
def test_layers_share_a_cap_as_if_all_were_tried(seed):
    rng = np.random.default_rng(seed)
    fronts = {f"conv{i}": points(rng, int(rng.integers(1, 5))) for i in range(4)}
    possible = [sum(p.workspace for p in c) for c in itertools.product(*fronts.values())]
    for cap in (rng.choice(possible), min(possible), max(possible), min(possible) - 1):
        best = enumerated(fronts, cap)
        if best == math.inf:
            with pytest.raises(ValueError, match=f"cap: expected at least {min(possible):,} bytes"):
                share_the_cap(fronts, cap)
            continue
        chosen = share_the_cap(fronts, cap)
        assert list(chosen) == list(fronts)
        assert all(plan in fronts[name] for name, plan in chosen.items())
        assert sum(plan.workspace for plan in chosen.values()) <= cap
        assert math.isclose(sum(plan.seconds for plan in chosen.values()), best)


def test_the_least_is_found_not_one_near_it():
    rng = np.random.default_rng(1)
    fronts = {
        f"conv{i}": [Plan((), 1 + 1e-3 * rng.random(), int(rng.integers(1, 1000))) for _ in "abcde"]
        for i in range(16)
    }
    cap, least = 4000, {0: 0.0}  # bytes used → the least seconds with just these
    for plans in fronts.values():
        more = [(n + p.workspace, t + p.seconds) for n, t in least.items() for p in plans]
        least = {}
        for used, seconds in more:
            if used <= cap:
                least[used] = min(seconds, least.get(used, math.inf))
    chosen = share_the_cap(fronts, cap)
    best = min(least.values())
    assert math.isclose(sum(plan.seconds for plan in chosen.values()), best, rel_tol=1e-9)
