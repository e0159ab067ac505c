"""What the cells of lesson 57 define is what the package has; and the helpers of its file."""

import itertools
from pathlib import Path

import nbformat
import numba
import numpy as np
import pytest

from cnnlab.distributed.compressors import topk
from cnnlab.distributed.trial import Counting
from cnnlab.lessons import lesson_57 as lesson
from cnnlab.measure import timing
from cnnlab.ranks import sparse
from cnnlab.ranks.virtual import World

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "57_fewer_numbers.ipynb"
CELLS = nbformat.read(NOTEBOOK, as_version=4).cells
MATTER = [c.source for c in CELLS if "matter" in c.metadata.get("tags", [])]


@pytest.fixture(scope="module")
def cells():
    """What the lesson's cells of matter define."""
    defined = {"np": np, "numba": numba, "lesson": lesson, "timing": timing, "World": World}
    defined["itertools"] = itertools
    exec("\n\n".join(MATTER), defined)
    return defined


def test_the_lesson_chooses_what_the_package_chooses(cells):
    rng, n, k = np.random.default_rng(0), 500, 20
    for mine, packaged in (
        (cells["TopK"](n), topk.Streams(n, argument=k / n)),
        (cells["DGC"](n), topk.DeepGradientCompression(n, argument=k / n, clip=np.inf)),
    ):
        for _ in range(10):
            gradient = rng.standard_normal(n).astype(np.float32)
            indices, values = mine.choose(gradient, k)
            expected = packaged.choose(gradient, 1, 1)
            assert np.array_equal(indices, expected[0])
            np.testing.assert_allclose(values, expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n, k", [(1000, 10), (1000, 300), (99, 99)])
def test_the_lesson_adds_up_as_the_package_does_and_sends_as_much(cells, n, k):
    def program(comm, packaged):
        values = np.random.default_rng(comm.rank).standard_normal(n).astype(np.float32)
        stream, total = topk.largest(values, k), np.empty(n, np.float32)
        if not packaged:
            return cells["sparse_allreduce"](comm, *stream, n)
        sparse.allreduce(comm, *stream, total)
        return total

    worlds = [Counting(8), Counting(8)]
    mine, expected = (world.run(program, k) for k, world in enumerate(worlds))
    np.testing.assert_array_equal(mine, expected)
    np.testing.assert_array_equal(worlds[0].sent, worlds[1].sent)


def test_a_step_is_computed_chosen_added_and_sent(cells):
    task = lesson.Workload("CNN")
    add_ups = {"dense": cells["dense"], "few": cells["sparse"](cells["TopK"], lambda step, n: 7)}
    links = ["1ms,1GB/s", "9ms,1GB/s"]
    for (compute, work, *messages), n in zip(
        cells["parts"](add_ups, task, links).values(), (2, 2), strict=True
    ):
        assert compute > 0 and work > 0
        assert messages == pytest.approx([1e-3 * n, 9e-3 * n], rel=0.1)


def test_images_by_label_are_those_of_the_same_batches():
    mixed, sorted_ = lesson.Workload("CNN", 1), lesson.Workload("CNN", 1, by_label=True)
    np.testing.assert_array_equal(np.sort(mixed.batches, 1), np.sort(sorted_.batches, 1))
    labels = sorted_.replica.labels[sorted_.batches]
    assert (np.diff(labels, axis=1) >= 0).all() and len(labels) >= lesson.STEPS
    both = [sum(task.gradient(task.start, 3, r, 4) for r in range(4)) for task in (mixed, sorted_)]
    np.testing.assert_allclose(*both, atol=1e-4)


def test_the_challenge_says_what_was_reached_and_asked(capsys):
    def trained(task, add_up, rate):
        return [[500, 10.0], [add_up, 80.0 + rate]]

    for mine, goal, sign in ((1000, 80, "✓"), (1000, 82, "✗"), (3000, 80, "✗")):
        lesson.challenge(mine, trained, 1.0, goal, 2000)
        assert f"{sign} 81.0 %, {mine:,} bytes" in capsys.readouterr().out
    lesson.challenge(..., trained, 1.0, 80, 2000)
    assert "not yet" in capsys.readouterr().out
