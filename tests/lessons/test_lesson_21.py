"""What lesson 21 measures, and that its cells share a step as the package does."""

import functools
from collections import Counter

import numpy as np
import pytest

from cnnlab.lessons import lesson_21
from cnnlab.ranks import cluster as clusters
from cnnlab.ranks.schedules import block
from tests.lessons import breaking


@pytest.fixture(scope="module")
def defined():
    """The names of the lesson's cells of matter."""
    return breaking.defined("21", "import functools")


def test_blocks_are_those_of_the_package(defined):
    for i, size, n in np.ndindex(5, 5, 9):
        here = defined["block"](i, size + 1, n) if i <= size else slice(0, 0)
        assert here == slice(*(block(i, size + 1, n) if i <= size else (0, 0)))


@pytest.mark.parametrize("kernels", ["vector", "loops"])
def test_steps_are_measured_in_parts_that_add_up(defined, kernels, monkeypatch):
    monkeypatch.setattr(clusters, "find_mpiexec", lambda: None)
    gather = defined["allgather"]
    programs = {
        "report": defined["Shared"],
        "all": functools.partial(defined["Shared"], gather=gather),
        "own maps": defined["OwnMaps"],
    }
    with clusters.cluster(2) as ranks:
        steps = lesson_21.measured(ranks, programs, kernels, 3)
    alone = [lesson_21.FUSED] * (kernels == "vector") + [lesson_21.APART]
    assert list(steps) == [*alone, *programs] and all(step.virtual for step in steps.values())
    assert list(steps["report"].parts)[:4] == ["kernels", "copies", "Gather", "Bcast"]
    assert list(steps["own maps"].parts)[:3] == ["kernels", "copies", "Allgather"]
    for step in steps.values():
        left, whole = step.timing.median - sum(step.parts.values()), step.timing.median
        assert np.isclose(left, 0, atol=1e-9 * whole) or (left < 0 and "the rest" not in step.parts)


def test_the_stepper_counts_what_is_gathered_and_what_is_read():
    shown = lesson_21.who_reads({"z": 6, "y": 6}, {"z": 3456, "y": 216}, ["y"])
    assert len(shown) == 2
    assert "y: a rank computes 3 of 6 features, receives the rest. So far 3,672" in shown.html
    assert "gathered, 216 of them read by others" in shown.html


def test_calls_are_added_up_by_part_and_numbers_are_not_called():
    spent, comm = Counter(), type("Comm", (), {"size": 2, "Bcast": lambda self, a: a + 1})()
    timed = lesson_21.Timed(comm, spent)
    assert (timed.size, timed.Bcast(2)) == (2, 3) and set(spent) == {"Bcast"}


def test_a_program_with_wrong_gradients_is_not_timed(defined, monkeypatch):
    class Wrong(defined["OwnMaps"]):
        def collect(self, part, out, axis):
            super().collect(part, out, axis)
            out *= 1 + self.comm.rank

    monkeypatch.setattr(clusters, "find_mpiexec", lambda: None)
    with clusters.cluster(2) as ranks, pytest.raises(clusters.RankError, match="wrong gradients"):
        lesson_21.measured(ranks, {"wrong": Wrong}, "loops", 1)
