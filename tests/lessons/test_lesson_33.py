"""Lesson 33: its listings are the package's steps, and its pictures show launches over time."""

import json
import re

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.occupancy import ARCHITECTURES, occupancy
from cnnlab.cuda.step import Layerwise
from cnnlab.lessons import lesson_33 as lesson
from cnnlab.measure.bench import MEASUREMENTS
from cnnlab.measure.gpu import GPUS
from cnnlab.network import Network
from tests.lessons import breaking

IMAGES, LABELS = np.random.default_rng(0).random((3, 1, 28, 28), np.float32), np.arange(3)


@pytest.fixture(scope="module")
def names():
    """What the lesson's cells with matter define, but for those in CUDA C."""
    result = {"np": np, "cuda": cuda, "re": re}
    cells = breaking.read(breaking.NOTEBOOKS / "33_whole_network.ipynb")
    for k in breaking.matter(cells):
        if not cells[k].source.startswith("%%"):
            exec(cells[k].source, result)
    return result


@pytest.mark.parametrize("fused, depth", [(False, 14), (True, 8)])
def test_the_listings_are_the_steps_of_the_package(names, fused, depth):
    lines = names["PLAIN"]
    for launch, operations in names["FUSED"].items() if fused else ():
        lines = names["fuse"](lines, launch, operations.split())
    with cuda.traced() as traces:
        step = Layerwise(Network().parameters(), IMAGES, LABELS, batch=3, fused=fused)
        step()
    kernels = [line.split()[0] for line in lines]
    assert sorted(kernels) == sorted(trace.kernel for trace in traces)
    with cuda.traced() as mine:
        for call in names["prepare"](lines, lesson.memory(Network(), IMAGES, LABELS, 3)):
            call()
    assert sum(trace.loads() for trace in mine) == sum(trace.loads() for trace in traces)
    rows = names["ends_at"]([1] * len(traces), names["dependencies"](traces))
    assert max(rows) == depth
    if fused:  # launches of a stage do not wait for each other
        assert rows == [1 + k for k, stage in enumerate(step.stages) for _ in stage]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_block_of_seven_warps_is_alone(names, architecture):
    kept = json.loads((MEASUREMENTS / "study-33-loops.json").read_text(encoding="utf-8"))
    code = kept["results"][kept["cases"].index(["step", architecture])]
    registers, _, shared = code["image_gradients"][:3]
    held = names["FITS"]["image_gradients"]
    warps = ARCHITECTURES[architecture][0]
    assert held * 7 / warps == occupancy(216, registers, shared, architecture)


def test_clocks_of_data_sheets():
    clocks = {"T4": 1.58e9, "L4": 2.04e9, "A100": 1.41e9, "H100": 1.98e9}
    assert {name: gpu.clock for name, gpu in GPUS.items()} == pytest.approx(clocks, rel=0.01)


def test_a_graph_has_a_row_for_each_level_and_an_arrow_for_each_wait():
    ax = lesson.needs(["a", "b", "c", "d"], [1, 2, 2, 3], [[], [0], [0], [1, 2]])
    at = {text.get_text(): text.get_position() for text in ax.texts if text.get_text()}
    assert [y for _, y in at.values()] == [1, 2, 2, 3] and len(ax.texts) == 4 + 4
