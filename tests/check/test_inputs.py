"""The cases, and the numbers drawn for them: wrong answers must show."""

import numpy as np
import pytest

from cnnlab import check
from cnnlab.check import inputs
from cnnlab.kernels import CONTRACT


def test_drawn_numbers_differ_between_seeds_and_between_elements():
    case = inputs.CASES[10]
    for operation in CONTRACT:
        *given, output = inputs.draw(operation, case).items()
        again, other = inputs.draw(operation, case), inputs.draw(operation, case, seed=1)
        assert np.isnan(output[1]).all()
        for name, array in given:
            assert (array == again[name]).all() and (array != other[name]).any()
            most = 20 if operation == "sigmoid" else 1
            assert array.dtype == np.int64 or abs(array).max() < most
            equal = array.dtype == np.int64 or (name == "x" and operation.startswith("max_pool"))
            zero = operation == "relu_backward" and np.count_nonzero(array == 0)
            assert len(np.unique(array)) > (1 if equal else 0.9 * (array.size - zero))


def test_windows_as_large_as_their_stride_take_the_cases_stride_or_its_kernel():
    for case in inputs.CASES:
        assert case.suited("conv_forward") is case and case.suited("relu") is case
        asked = case.suited("max_pool_forward")
        assert asked.stride == asked.sizes["K"]
        assert asked.stride == (case.stride if case.stride > 1 else case.sizes["K"])
        assert asked.all_sizes["P"] == case.sizes["H"] // asked.stride > 0
    said = str(check.kernel("max_pool_forward", lambda x, z, stride: None))
    assert "K=3, D=4, O=1, stride 3): z was never written" in said


def windows(x, size, step=None):
    """Windows size × size of x (N,C,H,W), step apart: (N,C,P,Q,size,size)."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    return seen[:, :, :: step or size, :: step or size]


def test_ties_and_negative_windows_are_drawn_from_the_first_case_on():
    for operation in ("max_pool_forward", "max_pool_backward"):
        x = inputs.draw(operation, inputs.CASES[0])["x"]
        last, first = np.sort(windows(x, 3).reshape(-1, 9))[:, -2:].T
        assert (first == last).any() and (first > last).any() and (first < 0).any()
        several = windows(inputs.draw(operation, inputs.CASES[1])["x"], 3)
        assert (several.max((4, 5)) > 0).any() and (several.max((4, 5)) < 0).any()


# --- answers to max pooling and ReLU --------------------------------------------------------------


def maxima(x, z, stride=4, group=np.max, size=None, step=None):
    """Max pooling, to be spoiled."""
    result = group(windows(x, size or stride, step or stride), axis=(4, 5))
    z[:] = result[:, :, : z.shape[2], : z.shape[3]]


def winners(x, dz, dx, stride=4, choose=lambda k, l: 0):
    """Its gradient, to be spoiled: `choose` says which of equals, in rows k and columns l, wins."""
    dx[:] = 0
    for n, c, p, q in np.ndindex(dz.shape):
        rows, columns = (slice(i * stride, (i + 1) * stride) for i in (p, q))
        seen, out = x[n, c, rows, columns], dx[n, c, rows, columns]
        k, l = np.nonzero((seen == seen.max()) | np.isnan(seen))
        out[k[choose(k, l)], l[choose(k, l)]] = dz[n, c, p, q]


def without_the_last_column(x, z, stride=4):
    kept = z[..., -1].copy()
    maxima(x, z, stride)
    z[..., -1] = kept


def clears_windows_only(x, dz, dx, stride=4):
    rows, columns = dz.shape[2] * stride, dz.shape[3] * stride
    beyond = dx.copy()
    winners(x, dz, dx, stride)
    dx[:, :, rows:], dx[..., columns:] = beyond[:, :, rows:], beyond[..., columns:]


def from_zero(window, axis):
    return window.max(axis, initial=0)


def without_the_last_of_a_row(window, axis):
    return window[..., :-1].max(axis, initial=-9)


WRONG = {
    "max_pool_forward": [
        without_the_last_column,
        lambda x, z, stride=4: maxima(x, z, stride, from_zero),
        lambda x, z, stride=4: maxima(x, z, stride, without_the_last_of_a_row),
        lambda x, z, stride=4: maxima(x, z, stride, np.mean),
        lambda x, z, stride=4: maxima(x, z, stride, np.min),
        lambda x, z, stride=4: maxima(abs(x), z, stride),
        lambda x, z, stride=4: maxima(x, z, stride, step=1),  # windows overlap
        lambda x, z, stride=4: maxima(x, z, stride, size=max(1, stride - 1)),
        lambda x, z, stride=4: maxima(x[..., ::-1], z, stride),  # columns are left over on the left
        lambda x, z, stride=4: maxima(x[:, :1], z, stride),
        lambda x, z, stride=4: maxima(x[:1], z, stride),
        lambda x, z, stride=4: maxima(x, z),
    ],
    "max_pool_backward": [
        clears_windows_only,
        lambda x, dz, dx, stride=4: winners(x, dz, dx, stride, lambda k, l: slice(None)),  # all
        lambda x, dz, dx, stride=4: winners(x, dz, dx, stride, lambda k, l: -1),  # the last
        lambda x, dz, dx, stride=4: winners(x, dz, dx, stride, lambda k, l: l.argmin()),
        lambda x, dz, dx, stride=4: winners(-x, dz, dx, stride),
        lambda x, dz, dx, stride=4: winners(abs(x), dz, dx, stride),
        lambda x, dz, dx, stride=4: winners(np.maximum(x, 0), dz, dx, stride),
        lambda x, dz, dx, stride=4: winners(x, np.ones_like(dz), dx, stride),
        lambda x, dz, dx, stride=4: winners(x, dz[:1], dx, stride),
        lambda x, dz, dx, stride=4: winners(x, dz[..., :-1], dx, stride),
    ],
    "relu": [
        lambda z, y: np.copyto(y, z),
        lambda z, y: np.copyto(y, abs(z)),
        lambda z, y: np.minimum(z, 0, out=y),
        lambda z, y: np.clip(z, 0, 0.9, out=y),
        lambda z, y: np.copyto(y, z, where=z > 0),
    ],
    "relu_backward": [
        lambda y, dy, dz: np.copyto(dz, dy),
        lambda y, dy, dz: np.copyto(dz, np.where(y >= 0, dy, 0)),
        lambda y, dy, dz: np.copyto(dz, np.where(dy > 0, dy, 0)),
        lambda y, dy, dz: np.copyto(dz, dy, where=y > 0),
        lambda y, dy, dz: np.copyto(dz, y > 0),
        lambda y, dy, dz: np.multiply(dy, y, out=dz),
    ],
}
CASES = [(operation, i) for operation, answers in WRONG.items() for i in range(len(answers))]


@pytest.mark.parametrize("operation, i", CASES)
def test_a_wrong_answer_is_rejected(operation, i):
    assert not check.kernel(operation, WRONG[operation][i])


@pytest.mark.parametrize("wrong", [0, 1])
def test_it_is_rejected_on_one_image_already_where_its_shape_is_not_the_reason(wrong):
    operation = ("max_pool_forward", "max_pool_backward")[wrong]
    said = str(check.kernel(operation, WRONG[operation][1]))
    assert "not yet right for one square image (N=1" in said


@pytest.mark.parametrize("answer", [maxima, winners])
def test_a_right_answer_is_accepted(answer):
    operation = "max_pool_forward" if answer is maxima else "max_pool_backward"
    verdict = check.kernel(operation, answer, repeats=3)
    assert verdict, str(verdict)
