"""Lesson 10: its virtual cores, and its barrier, which is the package's."""

import heapq
import itertools

import numba
import numpy as np
import pytest

from cnnlab.kernels import allreduce
from tests.lessons import breaking


@pytest.fixture(scope="module")
def cells():
    names = {module.__name__: module for module in (heapq, itertools, numba)}
    names |= {"np": np, "allreduce": allreduce}
    for cell in breaking.read(breaking.NOTEBOOKS / "10_threads.ipynb"):
        if "matter" in cell.tags and {"play", "barrier"} & cell.binds:
            exec(cell.source, names)
    return names


def test_a_slow_core_takes_fewer_chunks_of_a_shared_queue(cells):
    spans = cells["play"]([1] * 6, cells["dynamic"](range(6), 2), [1, 0.5])
    assert [core for core, *_ in spans].count(0) == 4 and cells["join"](spans) == 4


def test_its_barrier_counts_on_like_that_of_the_package(cells):
    counts = allreduce.counts()
    for _ in range(3):
        allreduce.barrier(allreduce.Team(1, np.zeros((1, 16)), np.zeros(16), counts))
        cells["barrier"](counts[allreduce.BARRIER :].ctypes.data, 1)
    assert counts[allreduce.BARRIER] == 6 and (allreduce.BARRIER, counts.size) == (8, 24)
