"""The challenge under a cap of workspace, and a cap that is divided among calls."""

import itertools

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.lessons import lesson_51
from cnnlab.lessons.lesson_50 import implicit_gemm
from cnnlab.lessons.lesson_51 import BUFFERS, allocated, challenge
from cnnlab.network import Conv, Dense, Network, ReLU, Sigmoid
from tests.lessons import breaking

NETWORK = Network((Conv(3, 3), ReLU(), Conv(2, 3), ReLU(), Dense(10), Sigmoid()), (2, 9, 9))
STEP = lesson_51.convolutions(NETWORK)
ARRAYS = STEP["conv2_forward"].arguments(64)
rows = implicit_gemm.model()


def planned():
    KERNELS["vector"].conv_forward(*ARRAYS)


def in_one_product(x, w, b, z):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    z[:] = np.einsum("ncpqkl,fckl->nfpq", np.repeat(windows, 2, 1)[:, ::2], w) + b[:, None, None]


def wrong(x, w, b, z):
    z[:] = 0


def test_a_kernel_under_the_cap_is_timed_beside_the_plans(capsys):
    ax = challenge(rows, ARRAYS, {"planned": planned}, 1, repeats=2)
    assert {"planned", "mine"} <= {label.get_text() for label in ax.get_yticklabels()}
    said = capsys.readouterr().out
    assert "bytes of workspace, where the cap is" in said and "times as long as planned." in said


@pytest.mark.parametrize(
    "mine, said",
    [
        (wrong, "not yet right"),
        (in_one_product, "✗ conv_forward: "),
        (..., "the challenge is still open"),
    ],
)
def test_any_other_is_not(mine, said, capsys):
    assert challenge(mine, ARRAYS, {"planned": planned}, 1) is None
    assert said in capsys.readouterr().out


def test_what_numpy_allocates_is_counted_at_its_peak():
    def kernel(x, z):
        for _ in range(3):
            z[:] = np.ones(2**20, np.float32)[0] + x

    assert 4 * 2**20 <= allocated(kernel, [np.zeros(5), np.empty(5)]) <= 4 * 2**20 + BUFFERS


def test_the_convolutions_of_a_step_take_the_images_asked_for():
    assert list(STEP)[:2] == ["conv1_forward", "conv2_forward"] and len(STEP) == 5
    assert STEP["conv2_forward"] == lesson_51.Convolution("conv_forward", 3, 2, 7, 3)
    conv = STEP["conv2_backward_weights"]
    x, dz, dw = conv.some_images(conv.arguments(4), slice(1, 3))
    assert (x.shape, dz.shape, dw.shape) == ((2, 3, 7, 7), (2, 2, 5, 5), (2, 3, 3, 3))


def test_a_divided_cap_is_kept_to_the_byte():
    page, rng = breaking.defined("51", "import functools"), np.random.default_rng(0)
    pareto, plan, divide = (page[name] for name in ("pareto", "Plan", "divide"))
    for _ in range(100):
        fronts = {
            name: pareto(plan(rng.uniform(), int(rng.integers(10**8)), ()) for _ in range(8))
            for name in "abc"
        }
        choices = list(itertools.product(*fronts.values()))
        room, times = (np.array([[p[i] for p in c] for c in choices]).sum(1) for i in (1, 0))
        cap = int(rng.choice(room)) - int(rng.integers(2))
        if cap < min(room):
            with pytest.raises(ValueError, match=f"cap: expected at least {min(room):,} bytes, "):
                divide(fronts, cap)
        else:
            times_of, room_of, _ = zip(*divide(fronts, cap).values(), strict=True)
            assert sum(room_of) <= cap
            assert sum(times_of) == pytest.approx(min(times[room <= cap]), rel=1e-12)
