"""Challenges: an answer is checked, then timed or counted, and drawn beside the rungs."""

import contextlib

import numba
import pytest

from cnnlab import cuda
from cnnlab.check import collective
from cnnlab.kernels import device
from cnnlab.kernels.loops import dense_forward
from cnnlab.measure.timing import Timing
from cnnlab.plots import challenge
from cnnlab.ranks.cluster import cluster
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
    ax = challenge.challenge("dense_forward", with_numpy, {"loops": dense_forward}, repeats=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["loops", "vector", "mine"]
    said = capsys.readouterr().out
    assert said.startswith("✓ dense_forward agrees with the reference")
    assert "Your dense_forward reaches" in said and "% of the roof of one core." in said


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
    assert challenge.floor("dense_forward", 64, 2**20, 1) == 2 * 216 * 10 * 64 / 1e11
    assert challenge.floor("conv_forward", 64, 2**30, 1) == pytest.approx(2**30 / 1e10)
    assert challenge.floor("conv_backward_bias", 64, 2**20, 1) is None


def test_a_stride_is_given_to_who_takes_one():
    @numba.njit
    def strided(x, w, b, z, stride=1): ...

    assert challenge.takes_stride(strided) and not challenge.takes_stride(with_numpy)


@pytest.mark.parametrize("floor, bound", [(0.5, ["roof"]), (None, [])])
def test_a_challenge_is_drawn_beside_the_rungs_with_its_roof(monkeypatch, capsys, floor, bound):
    seconds = {"rung": 8.0, "vector": 1.0, "mine": 2.0}
    timings = {name: Timing(name, (time,) * 3) for name, time in seconds.items()}
    monkeypatch.setattr(challenge.check, "exercise", lambda *_: True)
    monkeypatch.setattr(challenge, "checked", lambda *_: None)
    monkeypatch.setattr(challenge.timing, "compare", lambda calls, repeats: timings)
    monkeypatch.setattr(challenge, "floor", lambda *_: floor)
    ax = challenge.challenge("dense_forward", print, {"rung": print})
    assert [label.get_text() for label in ax.get_yticklabels()] == list(seconds)
    assert ax.figure.get_suptitle() == "Your dense_forward is at 50% of vector"
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if "×" not in text] == bound
    said = capsys.readouterr().out
    assert said.startswith("Your dense_forward reaches 50% of the speed of vector")
    assert ("25% of the roof" in said) == bool(floor)
    if floor:
        assert ax.lines[-1].get_xdata()[0] == 16  # times faster than the first rung


# --- the device: events, and bytes ---


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("operation", ["conv_backward_input", "conv_backward_bias"])
def test_events_time_kernels_whose_arrays_stay_there(operation):
    given = []

    def noted(*arrays):
        given.append(arrays)
        getattr(device, operation)(*arrays)

    timings = challenge.event_times(operation, {"one": noted, "other": noted}, batch=2, repeats=3)
    samples = {name: timing.samples for name, timing in timings.items()}
    assert samples == dict.fromkeys(("one", "other"), (0.002,) * 3)
    assert len(given) == (1 + 3) * 2  # each is checked first
    assert all(isinstance(array, Array) for arrays in given for array in arrays)


@pytest.mark.usefixtures("stand_in")
def test_events_time_nothing_that_is_wrong():
    with pytest.raises(AssertionError):
        challenge.event_times("conv_backward_bias", {"nothing": lambda dz, db: None}, batch=2)


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
    moved, least = challenge.count("sigmoid_backward", {"twice": twice, "mine": y})
    assert least == 3 * 4 * 6 * 24 * 24
    assert moved == {"twice": least * 5 // 3, "mine": least}
    said = "Your sigmoid_backward moves 1 times the least bytes, twice 1.67."
    ax = challenge.challenge_traffic("sigmoid_backward", y, {"twice": twice})
    assert ax.figure.get_suptitle() == "Your sigmoid_backward moves 1 times the least bytes"
    kilobytes = "69 kB, 1.67 times that", "41 kB, 1 times that"
    assert [text.get_text() for text in ax.texts] == ["any kernel must", *kilobytes]
    assert ax.lines[0].get_xdata()[0] == least / 1e3
    out = capsys.readouterr().out
    assert "no access is at fault" in out and out.endswith(f"{said}\n")


def test_nothing_is_counted_for_a_kernel_that_is_at_fault_or_empty(capsys):
    unguarded = launching(SOURCE.replace("if (i < size) ", ""))
    assert challenge.challenge_traffic("sigmoid_backward", unguarded) is None
    assert "out of bounds" in capsys.readouterr().out
    assert challenge.challenge_traffic("sigmoid_backward", lambda y, dy, dz: None) is None
    assert capsys.readouterr().out == "✗ sigmoid_backward: the challenge is still open\n"


# --- ranks ---


def right(comm, array):
    part, other = array.copy(), array.copy()
    for shift in range(1, comm.size):
        to, source = (comm.rank + shift) % comm.size, (comm.rank - shift) % comm.size
        comm.Sendrecv(part, to, recvbuf=other, source=source)
        array += other


def by_the_library(comm, array):
    comm.Allreduce(array.copy(), array)


def wrong(comm, array):
    array *= comm.size


def unfinished(comm, array): ...


def test_an_empty_answer_is_not_timed(capsys):
    assert challenge.challenge_ranks("allreduce", unfinished) is None
    assert "still open" in capsys.readouterr().out


@pytest.mark.mpi
def test_a_wrong_answer_is_not_timed_and_a_right_one_is_beside_the_library(capsys, monkeypatch):
    for answer in (right, wrong, by_the_library):
        answer.__module__ = "__main__"
    with cluster(collective.MOST) as ranks:  # once, as it takes long
        for module in (collective, challenge):
            monkeypatch.setattr(module, "cluster", lambda n_ranks: contextlib.nullcontext(ranks))
        assert challenge.challenge_ranks("allreduce", wrong, n=10) is None
        assert "not yet right" in capsys.readouterr().out
        ax = challenge.challenge_ranks("allreduce", right, {"again": right}, n=10, repeats=3)
        assert challenge.challenge_ranks("allreduce", by_the_library, n=10) is None
        assert "Allreduce: expected Send and Recv, got a collective" in capsys.readouterr().out
    assert [label.get_text() for label in ax.get_yticklabels()] == ["again", "MPI", "mine"]
