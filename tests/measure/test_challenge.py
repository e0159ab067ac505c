import pytest

from cnnlab import cuda
from cnnlab.kernels.loops import dense_forward
from cnnlab.kernels.variants.cuda_c import LADDER
from cnnlab.measure import challenge
from cnnlab.measure.challenge import event_times
from cnnlab.measure.timing import Timing
from tests.cuda.stand_in import Array
from tests.cuda.test_cupy_device import stand_in  # noqa: F401


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    monkeypatch.setattr(challenge.machine, "float32_peak", lambda: 1e11)
    monkeypatch.setattr(challenge.machine, "memory_bandwidth", lambda: 1e10)
    monkeypatch.setattr(challenge.machine, "describe", lambda: {"caches": {"L2": 2**20}})


def with_numpy(x, w, b, z):
    z[:] = x @ w.T + b


def without_bias(x, w, b, z):
    z[:] = x @ w.T


def test_a_right_kernel_is_timed_beside_vector_and_the_rungs(capsys):
    result = challenge.challenge("dense_forward", with_numpy, {"loops": dense_forward}, repeats=3)
    assert list(result.timings) == ["loops", "vector", "mine"]
    assert result.floor == pytest.approx(2 * 216 * 10 * 64 / 1e11)
    assert result.of_roof == result.floor / result.timings["mine"].median
    said = capsys.readouterr().out
    assert said.startswith("✓ dense_forward agrees with the reference")
    assert str(result).startswith(
        f"Your dense_forward reaches {result.of_goal:.0%} of the speed of"
    )
    assert str(result).endswith("of the roof of one core.")


@pytest.mark.parametrize(
    "mine, word",
    [
        (without_bias, "the bias seems to be missing"),
        (lambda x, w, b, z: dense_forward(x, w, b, z), "a kernel of your own"),
        (lambda x, w, b, z: None, "still open"),
        (..., "still open"),
        (7, "TypeError"),
    ],
)
def test_nothing_is_timed_before_it_is_right(mine, word, capsys, monkeypatch):
    monkeypatch.setattr(challenge.timing, "compare", lambda *_, **__: pytest.fail("timed"))
    assert challenge.challenge("dense_forward", mine) is None
    said = capsys.readouterr().out
    assert said.startswith("✗") and word in said


def test_a_wrong_rung_is_an_error_of_the_lesson():
    with pytest.raises(AssertionError, match="dense_forward of wrong"):
        challenge.challenge("dense_forward", with_numpy, {"wrong": without_bias})
    with pytest.raises(ValueError, match=r"operation: expected one of conv_forward, .* got 'relu'"):
        challenge.challenge("relu", with_numpy)


def test_on_threads_it_must_be_parallel(capsys):
    assert challenge.challenge("dense_forward", with_numpy, n_threads=2) is None
    assert "not parallel" in capsys.readouterr().out


def test_the_roof_is_the_peak_or_the_memory_where_no_cache_holds_the_arrays():
    work = 2 * 86_400 * 64
    assert challenge.floor("conv_backward_input", 64, 2**20, 2) == pytest.approx(work / 2e11)
    assert challenge.floor("conv_forward", 64, 2**30, 1) == pytest.approx(2**30 / 1e10)
    assert challenge.floor("conv_backward_bias", 64, 2**20, 1) is None


def test_an_operation_without_multiply_adds_has_no_roof():
    timing = Timing("", (1.0,) * 3)
    result = challenge.Challenge("conv_backward_bias", {"vector": timing, "mine": timing}, None, 1)
    assert str(result) == "Your conv_backward_bias reaches 100% of the speed of vector."
    assert result.of_roof is None


def right(comm, array):
    import numpy as np

    part = array.copy()
    comm.Reduce(part, array if comm.rank == 0 else None)
    comm.Bcast(array)
    assert isinstance(array, np.ndarray)


def wrong(comm, array):
    array *= comm.size


def unfinished(comm, array): ...


def test_an_empty_answer_is_not_timed(capsys):
    assert challenge.challenge_ranks("allreduce", unfinished) is None
    assert "still open" in capsys.readouterr().out


@pytest.mark.mpi
def test_a_wrong_answer_is_not_timed_and_a_right_one_is_beside_the_library(capsys):
    for answer in (right, wrong):
        answer.__module__ = "__main__"
    assert challenge.challenge_ranks("allreduce", wrong, n=10) is None
    assert "not yet right" in capsys.readouterr().out
    result = challenge.challenge_ranks("allreduce", right, {"again": right}, n=10, repeats=3)
    assert list(result) == ["again", "MPI", "mine"] and all(t.n == 3 for t in result.values())


SOURCE = """
extern "C" __global__ void sb(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""


def launching(source):
    kernels = cuda.Kernels(source)
    return lambda y, dy, dz: kernels.over("sb", y.size, y, dy, dz, y.size)


def test_bytes_are_counted_beside_the_rungs_and_the_least(capsys):
    y = launching(SOURCE)
    twice = launching(
        SOURCE.replace("if (i < size) dz", "if (i < size) dz[i] += 1; if (i < size) dz")
    )
    result = challenge.challenge_traffic("sigmoid_backward", y, {"twice": twice})
    assert list(result.moved) == ["twice", "mine"]
    assert result.least == 3 * 4 * 6 * 24 * 24
    assert result.moved == {"twice": result.least * 5 // 3, "mine": result.least}
    assert "no access is at fault" in capsys.readouterr().out
    assert str(result) == ("Your sigmoid_backward moves 1 times the least bytes, twice 1.67.")


def test_nothing_is_counted_for_a_kernel_at_fault(capsys):
    unguarded = launching(SOURCE.replace("if (i < size) ", ""))
    assert challenge.challenge_traffic("sigmoid_backward", unguarded) is None
    assert "out of bounds" in capsys.readouterr().out


def test_an_open_challenge_is_no_wrong_answer(capsys):
    def mine(y, dy, dz): ...

    assert challenge.challenge_traffic("sigmoid_backward", mine) is None
    assert capsys.readouterr().out == "✗ sigmoid_backward: the challenge is still open\n"


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("operation", ["conv_backward_input", "conv_backward_bias"])
def test_events_time_kernels_whose_arrays_stay_there(operation):
    given = []
    noted = {
        name: lambda *arrays, way=way: (given.append(arrays), way(*arrays))
        for name, way in LADDER[operation].items()
    }
    timings = event_times(operation, noted, batch=2, repeats=3)
    assert {name: timing.samples for name, timing in timings.items()} == dict.fromkeys(
        LADDER[operation], (0.002,) * 3
    )
    assert len(given) == (1 + 3) * len(noted)  # each is checked first
    assert all(isinstance(array, Array) for arrays in given for array in arrays)


@pytest.mark.usefixtures("stand_in")
def test_events_time_nothing_that_is_wrong():
    with pytest.raises(AssertionError):
        event_times("conv_backward_bias", {"nothing": lambda dz, db: None}, batch=2)
