import numba
import pytest

from cnnlab.kernels.loops import dense_forward
from cnnlab.plots import challenge


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
