import numpy as np
import pytest

from cnnlab.cuda import SOURCES
from cnnlab.cuda.step import BLOCKS, FusedStep, Layerwise
from cnnlab.measure import gpu as module
from cnnlab.measure.gpu import GPUS, LAUNCH, NODE, Counts, counts, lines_of, model
from cnnlab.network import Network

IMAGES = np.random.default_rng(0).random((256, 1, 28, 28), np.float32)
LABELS, PARAMS = np.arange(256) % 10, Network().parameters()


def layerwise(batch):
    return Layerwise(PARAMS, IMAGES, LABELS, batch=batch, fused=True)


def test_each_count_of_a_step_says_what_it_counts(monkeypatch):
    whole = counts(layerwise, 8)
    assert whole.launches == 13 and whole.for_each_load == pytest.approx(25 / 51)
    assert max(whole.dram.values()) < whole.distinct < whole.requested / 10
    monkeypatch.setattr(module, "MOST", 100_000)  # the same, from some of the blocks
    part = counts(layerwise, 8)
    assert part.requested == pytest.approx(whole.requested, rel=0.03)
    assert part[2:4] == (pytest.approx(whole.distinct, abs=256), pytest.approx(whole.dram, abs=256))


def test_fusing_saves_a_third_of_the_distinct_bytes_and_an_l2_most_of_them():
    """At 256 images 45 and 30 MB; 9 MB suffice for whoever keeps a step in an L2 of 40 MB."""
    result = counts(layerwise, 256)
    assert result.distinct == pytest.approx(29.85e6, rel=1e-3)
    t4, a100, h100 = result.dram.values()
    assert t4 == pytest.approx(23.2e6, rel=0.01)
    assert a100 == h100 == pytest.approx(9.17e6, rel=0.01)
    assert model(result, GPUS["T4"])["memory"] == pytest.approx(t4 / 320e9)
    assert model(result, GPUS["H100"])["step"] == 13 * LAUNCH  # launch-bound


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
    result = Counts(3, 1e9, 0, dram, 0.0, 1, 40 * 64 * gpu.clock * 1e-6, 4.0)
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
