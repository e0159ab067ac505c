"""Lesson 10: plans as arrays, pictures of them, and its barrier, which is the package's."""

import numpy as np
import pytest

from cnnlab.kernels import allreduce
from cnnlab.lessons import lesson_10 as lesson
from tests.lessons import breaking

PATH = breaking.NOTEBOOKS / "10_threads.ipynb"


@pytest.fixture(scope="module")
def cells():
    """What the cells with schedules and with the barrier define."""
    import heapq
    import itertools

    import numba

    names = {"heapq": heapq, "itertools": itertools, "numba": numba, "np": np}
    names["allreduce"] = allreduce
    for cell in breaking.read(PATH):
        if "matter" in cell.tags and {"play", "barrier"} & cell.binds:
            exec(cell.source, names)
    return names


def test_threads_that_share_a_queue_share_its_counter(cells):
    chunks, queue, taken = lesson.arrays(cells["dynamic"](range(5)[::-1], 3, 2))
    assert chunks.tolist() == [[[4, 2, -1], [2, 0, -1], [0, -1, -1]]]
    assert queue.tolist() == [0, 0, 0] and taken.shape == (1, 8)
    chunks, queue, _ = lesson.arrays(cells["cyclic"](range(5), 2))
    assert chunks.tolist() == [[[0, 5, 2]], [[1, 5, 2]]] and queue.tolist() == [0, 1]


def test_a_slow_core_takes_fewer_chunks_of_a_shared_queue(cells):
    spans = cells["play"]([1] * 6, cells["dynamic"](range(6), 2), [1, 0.5])
    assert [core for core, *_ in spans].count(0) == 4 and cells["join"](spans) == 4


def test_its_barrier_counts_on_like_that_of_the_package(cells):
    counts = allreduce.counts()
    team = allreduce.Team(1, np.zeros((1, 16)), np.zeros(16), counts)
    for _ in range(3):
        allreduce.barrier(team)
        cells["barrier"](counts[allreduce.BARRIER :].ctypes.data, 1)
    assert counts[allreduce.BARRIER] == 6 and allreduce.BARRIER == 8


def test_work_is_drawn_on_the_thread_that_did_it():
    sizes = np.array([1, 2, 3])
    (ax,) = lesson.shares({"blocks": np.array([0, 0, 1])}, sizes, 2, title="T")
    boxes = sorted((b.get_y() + 0.4, b.get_x(), b.get_width()) for b in ax.patches)
    assert boxes == [(0, 0, 1), (0, 1, 2), (1, 0, 3)]


def test_a_stepper_has_a_frame_for_each_task_and_one_for_the_join():
    spans = [(0, 0, 0.0, 1.0), (1, 1, 0.0, 2.0), (0, 2, 1.0, 3.0)]
    assert len(lesson.schedules({"one": spans}, n_cores=2, ideal=2.5)) == 4
