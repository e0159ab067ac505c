"""The GPU's side: on a real one with `pytest -m gpu`, and what a stand-in for CuPy can prove."""

import sys

import numpy as np
import pytest

from cnnlab import check, cuda, measure
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.cuda.step import FusedStep, Layerwise
from cnnlab.data import load
from cnnlab.kernels import CONTRACT, KERNELS, device
from cnnlab.network import Network
from cnnlab.training import Replica, Sgd
from tests.cuda.stand_in import Array, CUDARuntimeError, Stream, cupy

FUNCTIONS = [(operation, getattr(device, operation)) for operation in CONTRACT]


@pytest.fixture
def gpu():
    if not cuda.gpu()[0]:
        pytest.skip(cuda.gpu()[1])


def digits(n):
    images = np.random.default_rng(0).random((n, 1, 28, 28), np.float32)
    return Network().parameters(seed=0), images, np.arange(n) % 10


# --- on a GPU -----------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("operation, function", FUNCTIONS)
def test_every_kernel_agrees_with_the_reference(gpu, operation, function):
    assert check.kernel(operation, function)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [Layerwise, FusedStep])
@pytest.mark.parametrize("n_steps", [1, 4])
def test_a_graph_replays_the_steps(gpu, kind, n_steps):
    one, other = (kind(*digits(20), batch=5) for _ in range(2))
    replay = one.graph(n_steps)
    for _ in range(4 // n_steps):
        replay()
    for _ in range(4):
        other()
    cuda.wait()
    assert np.allclose(one.parameters().flat, other.parameters().flat, atol=1e-5)
    assert not np.array_equal(one.parameters().flat, Network().parameters(seed=0).flat)


@pytest.mark.gpu
def test_the_gpu_trains_as_the_emulator_does_and_twice_with_the_same_bits(gpu):
    params, images, labels = digits(300)
    flats = []
    for _ in range(2):
        trained = params.copy()
        FusedStep(params, images, labels, batch=64).train(trained, np.arange(300), 0.4)
        flats.append(trained.flat)
    assert np.array_equal(*flats)
    with cuda.traced() as traces:
        emulated = params.copy()
        FusedStep(params, images, labels, batch=64).train(emulated, np.arange(300), 0.4)
    assert not [fault for trace in traces for fault in trace.faults()]
    assert np.allclose(flats[0], emulated.flat, atol=1e-5)


@pytest.mark.gpu
def test_arrays_of_the_host_are_refused_where_nothing_would_come_back(gpu):
    kernels = cuda.load("elementwise")
    array = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="sigmoid: expected CuPy arrays"):
        kernels.prepare("sigmoid", (1,), (32,), array, array, 4)


# --- with a stand-in for CuPy -------------------------------------------------------------------


@pytest.fixture
def stand_in(monkeypatch):
    caches = cuda.gpu, cuda.load
    monkeypatch.setitem(sys.modules, "cupy", cupy())
    monkeypatch.delitem(sys.modules, "cnnlab.cuda.cupy_device", raising=False)
    monkeypatch.setattr(Stream, "noted", ())
    for cached in caches:
        cached.cache_clear()
    yield sys.modules["cupy"]
    sys.modules.pop("cnnlab.cuda.cupy_device", None)
    for cached in caches:
        cached.cache_clear()


def test_every_rung_trains_there_and_an_epoch_is_one_launch(stand_in):
    assert cuda.gpu() == (True, "GPU: Tesla T4")
    result = measure.contestants(["device"], load("digits", 20, 10), 8, 1, None)
    for one in result.values():
        one.check()
        assert one.n_steps == 2 and one.hardware == "GPU: Tesla T4"
    Stream.noted = ()
    result["device, graph"].steps()
    assert Stream.noted == ("the current stream",)  # also where that is a thread's own


def test_training_there_is_training_here(stand_in):
    params, images, labels = digits(140)
    there, here = params.copy(), params.copy()
    step = FusedStep(params, images, labels, batch=2)
    loss = step.train(there, np.arange(139), 0.4)  # a graph of 64 steps, 5 more, and an image
    with cuda.traced() as traces:  # on the emulator, with arrays of CuPy
        step = FusedStep(params, images[:8], labels[:8], batch=2)
        step.graph(2)()
        Layerwise(params, images, labels, batch=2, fused=True)()
    assert not [fault for trace in traces for fault in trace.faults()]
    order = np.arange(139)
    expected = Replica(KERNELS["vector"], here, images, labels, 2, Sgd(0.4)).loop()(order)
    np.testing.assert_allclose(there.flat, here.flat, atol=1e-5)
    assert loss == pytest.approx(expected, rel=1e-5)
    some = params.copy()
    Replica(KERNELS["vector"], some, images, labels, 2, Sgd(0.4)).loop()(np.arange(4))
    np.testing.assert_allclose(step.parameters().flat, some.flat, atol=1e-6)


def test_the_error_that_broke_a_capture_is_the_one_that_is_told(stand_in):
    def call():
        if Stream.captured is not None:
            Stream.captured.append("broken")
            raise ValueError("the first error")

    with pytest.raises(ValueError, match="the first error"):
        cuda.graph([[call]])


NO_NVRTC = "Tesla T4: CuPy finds no NVRTC (pip install -U 'cupy-cuda12x[ctk]')"


@pytest.mark.parametrize(
    "part, call, error, words",
    [
        ("runtime", "getDeviceProperties", "no device is detected", "(no device is detected)"),
        ("nvrtc", "getVersion", "failed to load libnvrtc.so.12:\n  OSError", NO_NVRTC),
    ],
)
def test_what_a_gpu_lacks_is_said_in_one_line(stand_in, part, call, error, words):
    def missing(*given):
        raise CUDARuntimeError(error)

    setattr(getattr(stand_in.cuda, part), call, missing)
    there, line = cuda.gpu()
    assert not there and "\n" not in line and words in line
    assert "so the emulator runs the kernels" in line


def test_arrays_of_a_gpu_are_traced_as_copies_that_overlap_as_they_do():
    room = np.arange(40, dtype=np.float32)
    x, y = Array(room[:32]), Array(room[8:])
    source = """extern "C" __global__ void shift(const float* x, float* y)
    { float mine = x[threadIdx.x]; __syncthreads(); y[threadIdx.x] = mine; }"""
    with cuda.traced() as traces:
        Traced(source, traces).launch("shift", (1,), (32,), x, y)
    assert room.tolist() == [*range(8), *range(32)]
    assert traces[0].arrays[0].name == "x/y" and not traces[0].faults()
