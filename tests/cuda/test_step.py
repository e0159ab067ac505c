import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda import step as module
from cnnlab.cuda.occupancy import compiled
from cnnlab.cuda.step import FusedStep, misfit, shared_bytes, sizes
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import LENET5, Network
from tests.cuda.examples import NET, N, digits, trained
from tests.networks import report_network

TWO_CHANNELS = report_network(2, 19, 23, filters=3, kernel=3, pool=2, classes=5)
SEVEN_BY_THREE = report_network(1, 31, 18, filters=4, kernel=7, pool=3, classes=12)
WIDE = report_network(3, 26, 26, filters=8, kernel=3, pool=3, classes=5)
NETWORKS = {"small": NET, "report": Network(), "2 channels": TWO_CHANNELS, "7×3": SEVEN_BY_THREE}


def data(net, n=N):
    rng = np.random.default_rng(0)
    return rng.random((n, *net.image_shape), np.float32), rng.integers(0, net.classes, n)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("most", [2, 128])
def test_steps_are_those_of_the_reference(name, most, monkeypatch):
    monkeypatch.setattr(module, "BLOCKS", most)  # some blocks take two images, and some take one
    net = NETWORKS[name]
    step = FusedStep(net.parameters(seed=1), *data(net), batch=3, rate=0.5)
    assert sum(map(len, step.stages)) == 2 and step.steps_an_epoch == 3
    order = np.random.default_rng(2).permutation(N)
    step.start(order)
    step()
    step.graph(2)()
    flat, loss = trained(order, 3, 0.5, 3, net, data(net))
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)
    assert step.loss() == pytest.approx(loss, rel=1e-5)


def test_training_takes_parts_of_an_epoch_a_smaller_batch_at_the_end_and_any_rate(monkeypatch):
    monkeypatch.setattr(module, "MANY", 2)
    params, other, order = NET.parameters(seed=1), NET.parameters(seed=1), np.arange(N)[::-1]
    step = FusedStep(params, *digits(), batch=2)
    loss = step.train(params, order, 0.5)  # two graphs of two steps, one step, and one image
    exact, grads, expected = NET.parameters(seed=1, dtype=np.float64), NET.zeros(np.float64), 0.0
    images, labels = digits()
    for chosen in np.split(order, range(2, N, 2)):
        x = images[chosen].astype(np.float64)
        expected += loss_and_gradients(KERNELS["reference"], exact, x, labels[chosen], grads)
        exact.flat -= 0.5 / len(chosen) * grads.flat
    np.testing.assert_allclose(params.flat, exact.flat, rtol=0, atol=2e-6)
    np.testing.assert_allclose(step.gradients().flat, grads.flat, rtol=0, atol=1e-5)
    assert loss == pytest.approx(expected, rel=1e-6)
    before = other.flat.copy()
    assert step.train(other, order, 0.0) > 0 and np.array_equal(other.flat, before)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_has_no_faults(name):
    net = NETWORKS[name]
    with pytest.MonkeyPatch.context() as patch, cuda.traced() as traces:
        patch.setattr(module, "BLOCKS", 2)
        FusedStep(net.parameters(seed=1), *data(net), batch=3)()
    assert [trace.kernel for trace in traces] == ["image_gradients", "add_and_update"]
    assert [fault for trace in traces for fault in trace.faults()] == []
    declared = [a for a in traces[0].arrays if a.shared]
    assert sum(a.size * a.item for a in declared) == shared_bytes(net)


@pytest.fixture(scope="module")
def traces():
    net = Network()
    with cuda.traced() as result:
        FusedStep(net.parameters(seed=1), *data(net, 256), batch=256)()
    assert result[0].sampled[1] == 128 and result[1].sampled is None  # each block takes two images
    return result


def test_a_step_moves_at_most_six_megabytes(traces):
    assert sum(trace.requested() for trace in traces) <= 6e6
    assert traces[0].requested() >= 256 * 784 * 4  # the images


def test_neighbours_read_and_write_neighbours(traces):
    for trace in traces:
        for name, row in trace.traffic().items():
            if "requested" in row:
                assert row["requested"] <= max(1.3 * row["bytes"], 32 * row["requests"]), name


def test_no_bank_serves_more_than_two(traces):
    shared = [(t, a.name) for t in traces for a in t.arrays if a.shared]
    assert {name for _, name in shared} >= {"image", "weights", "pooled", "room", "sums"}
    for trace, name in shared:
        assert trace.conflicts(name).max() <= 2, name


@pytest.mark.parametrize(
    "network, words",
    [
        (LENET5, "expected Conv, Sigmoid, Pool, Sigmoid, Dense, Sigmoid, got Conv, ReLU, MaxPool"),
        (report_network(filters=1, kernel=21), "expected 32 to 1024 windows of all maps, got 4"),
        (report_network(pool=1), "expected 32 to 1024 windows of all maps, got 3456"),
        (report_network(classes=40), "expected at most 49152 bytes of shared memory, got 62"),
        (
            report_network(filters=4, pool=8),
            "at most 255 registers for each of 36 threads, got 339",
        ),
        (report_network(filters=14), "at most 49152 bytes of shared memory, got"),
        (WIDE, "at most 128 registers for each of 512 threads, got 157"),
    ],
)
def test_a_network_that_a_block_cannot_take_is_refused(network, words):
    assert words in misfit(network)
    images = np.zeros((1, *network.image_shape), np.float32)
    with pytest.raises(ValueError, match=f"network: .*{words}"):
        FusedStep(network.parameters(), images, [0], batch=1)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_taken_fits_into_registers_and_shared_memory(name, architecture):
    """A T4 has 64 KB of shared memory; a spill is an array that left the registers."""
    pytest.importorskip("cuda.core", reason="pip install 'cnnlab[nvrtc]', for Linux")
    net = NETWORKS[name]
    assert misfit(net) is None
    source = f"#define SIZES {sizes(net)}\n{(cuda.SOURCES / 'step.cu').read_text()}"
    result = compiled(source, architecture)
    assert [local for _, local, _ in result.values()] == [0, 0]
    assert result["image_gradients"][2] == shared_bytes(net) <= 48 * 1024
