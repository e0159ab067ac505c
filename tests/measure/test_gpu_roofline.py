import functools

import numpy as np
import pytest

from cnnlab.cuda import SOURCES
from cnnlab.cuda.step import BLOCKS, FusedStep, Layerwise
from cnnlab.measure import gpu as module
from cnnlab.measure.gpu import GPUS, NODE, Counts, counts, lines_of, model
from cnnlab.network import Network

IMAGES = np.random.default_rng(0).random((256, 1, 28, 28), np.float32)
LABELS, PARAMS = np.arange(256) % 10, Network().parameters()


def layerwise(batch):
    return Layerwise(PARAMS, IMAGES, LABELS, batch=batch, fused=True)


def test_layer_by_layer_each_image_adds_the_same(monkeypatch):
    monkeypatch.setattr(module, "_traced", functools.cache(module._traced))  # each batch once
    grown, whole = counts(layerwise, 3, traced=(1, 2)), counts(layerwise, 3)
    for name in ("requested", "ideal", "turns"):  # but for a sector here and there
        assert getattr(grown, name) == pytest.approx(getattr(whole, name), rel=2e-3), name
    assert grown.distinct == pytest.approx(whole.distinct, abs=64)
    result = counts(layerwise, 2)
    assert result.launches == 13 and result.for_each_load == pytest.approx(25 / 51)
    assert result.ideal < result.requested
    assert max(result.dram.values()) < result.distinct < result.requested / 10


def test_the_model_of_a_step_meets_the_goals():
    """At most 65 µs on a T4 and 20 µs on an H100, at 256 images."""
    result = counts(lambda batch: FusedStep(PARAMS, IMAGES, LABELS, batch=batch), 256)
    assert result.launches == 2 and result.worst == 2 and result.requested <= 6e6
    assert result.multiply_adds == 256 * sum(Network().multiply_adds.values())
    step = {name: model(result, gpu, NODE, BLOCKS)["step"] for name, gpu in GPUS.items()}
    assert step["T4"] <= 65e-6 and step["H100"] <= 20e-6
    assert step["T4"] > step["A100"] > step["H100"] == 2 * NODE


def test_the_slowest_limits_be_it_the_launches_or_the_work():
    gpu = GPUS["T4"]
    dram = {gpu.cache: 320_000}
    result = Counts(3, 1e9, 0, 0, dram, 0.0, 1, 40 * 64 * gpu.clock * 1e-6, 4.0)
    even, uneven = model(result, gpu, 1e-6), model(result, gpu, 1e-6, blocks=60)
    assert even == pytest.approx(
        {"launches": 3e-6, "memory": 1e-6, "arithmetic": 1e-6, "shared memory": 0, "step": 3e-6}
    )
    assert model(result, gpu, 1e-8)["step"] == pytest.approx(1e-6)
    assert uneven["arithmetic"] == pytest.approx(2 / 60 * 40 * 1e-6)  # one takes two of 60 blocks
    assert gpu.clock == pytest.approx(1.58e9, rel=0.01)


def test_the_lines_of_a_function_are_found():
    lines = lines_of("step", "convolve")
    text = (SOURCES / "step.cu").read_text().splitlines()
    assert "convolve(" in text[lines.start - 1] and text[lines.stop - 2] == "}"
    assert sum("image[" in line for line in text[lines.start - 1 : lines.stop - 1]) == 1
