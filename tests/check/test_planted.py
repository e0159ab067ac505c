"""Wrong answers that are right on small, ordinary numbers: each is the reference, spoiled."""

import sys

import numpy as np
import pytest

from cnnlab import check
from cnnlab.check.operation import run_reference
from cnnlab.kernels import CONTRACT


def spoiled(operation, inputs=lambda name, array: array, output=lambda array: array):
    """The reference, whose inputs and output are changed on the way."""

    def answer(*arrays, **options):
        given = dict(zip(CONTRACT[operation], arrays, strict=True))
        changed = {name: inputs(name, array.copy()) for name, array in given.items()}
        with np.errstate(all="ignore"):
            result, loss = run_reference(operation, changed, options)
            arrays[-1][:] = output(result)
        return loss

    return answer


def rejected(operation, answer, **options):
    verdict = check.kernel(operation, answer, **options)
    assert not verdict
    return str(verdict)


FORWARD = ("conv_forward", "pool_forward", "dense_forward")
INPUT = ("conv_backward_input", "pool_backward_input", "dense_backward_input")
WEIGHTS = ("conv_backward_weights", "pool_backward_weights", "dense_backward_weights")
BIAS = ("conv_backward_bias", "pool_backward_bias", "dense_backward_bias")
SUMS = FORWARD + INPUT + WEIGHTS + BIAS


@pytest.mark.parametrize("operation", CONTRACT)
def test_what_is_not_spoiled_is_right(operation):
    verdict = check.kernel(operation, spoiled(operation))
    assert verdict, str(verdict)


# --- sizes ----------------------------------------------------------------------------------------


def beyond(axis, most):
    """Zero beyond the first `most` elements of an axis."""

    def cut(array):
        if array.ndim > max(axis, -axis - 1):
            np.moveaxis(array, axis, 0)[most:] = 0
        return array

    return cut


@pytest.mark.parametrize("operation", SUMS)
def test_images_beyond_a_hundred_count(operation):
    cut = beyond(0, 100)
    per_image = operation in FORWARD + INPUT
    if per_image:
        rejected(operation, spoiled(operation, output=cut))
    else:
        rejected(operation, spoiled(operation, lambda n, a: cut(a) if n in ("x", "dz") else a))


@pytest.mark.parametrize("operation", [*FORWARD, *WEIGHTS, *INPUT])
def test_channels_and_inputs_beyond_a_hundred_count(operation):
    cut = beyond(1, 100)
    if operation.startswith("pool") or operation in INPUT:
        wrong = spoiled(operation, output=cut if "weights" not in operation else beyond(0, 100))
    else:
        wrong = spoiled(operation, lambda name, a: cut(a) if name == "x" else a)
    rejected(operation, wrong)


@pytest.mark.parametrize("operation", ["conv_forward", "dense_forward", *BIAS])
def test_filters_and_outputs_beyond_a_hundred_count(operation):
    axis = 1 if "forward" in operation else 0
    rejected(operation, spoiled(operation, output=beyond(axis, 100)))


@pytest.mark.parametrize("size", [4, 12, 16, 64])
@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("rest", [0, 1, "last"])
def test_blocks_of_results_are_done_to_the_end(size, axis, rest):
    """What blocks leave over is dropped; the last block is dropped where they leave nothing over,
    or one; small sizes are done without blocks."""

    def dropped(z):
        n = z.shape[axis]
        if n > size:
            kept = n - n % size if rest == "last" else n - size if n % size == rest else n
            np.moveaxis(z, axis, 0)[kept:] = 0
        return z

    rejected("conv_forward", spoiled("conv_forward", output=dropped))


def test_the_last_columns_of_a_long_row_count():
    def swapped(z):
        if z.shape[3] > 16:
            z[..., -16:] = z[..., -16:][..., ::-1].copy()
        return z

    rejected("conv_forward", spoiled("conv_forward", output=swapped))


@pytest.mark.parametrize("operation", ["conv_forward", "pool_forward", "conv_backward_input"])
def test_a_large_kernel_counts_to_its_end(operation):
    cut_row, cut_column = beyond(-2, 16), beyond(-1, 16)
    for cut in (cut_row, cut_column):
        rejected(operation, spoiled(operation, lambda n, a, cut=cut: cut(a) if n == "w" else a))


def test_a_long_row_counts_to_its_end():
    cut = beyond(1, 4096)
    rejected("dense_forward", spoiled("dense_forward", lambda n, a: cut(a) if n == "x" else a))


def test_elementwise_operations_have_arrays_of_any_dimension():
    def three_only(z, y):
        _N, _C, _H = z.shape
        y[:] = np.maximum(z, 0)

    assert "raised ValueError: not enough values" in rejected("relu", three_only)


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", CONTRACT)
def test_a_factor_of_eight_in_a_million_is_more_than_rounding(operation):
    rejected(operation, spoiled(operation, output=lambda a: a * (1 + 8e-6)))


@pytest.mark.parametrize("operation", ["cross_entropy"])
def test_so_it_is_in_the_loss(operation):
    wrong = spoiled(operation)
    rejected(operation, lambda *arrays: wrong(*arrays) * (1 + 8e-6))


@pytest.mark.parametrize("operation", SUMS)
def test_inputs_rounded_to_five_decimals_are_wrong(operation):
    rejected(operation, spoiled(operation, lambda name, a: a.round(5)))


@pytest.mark.parametrize("operation", SUMS)
def test_inputs_in_half_precision_are_wrong(operation):
    def half(name, array):
        return array.astype(np.float16).astype(np.float32)

    rejected(operation, spoiled(operation, half))


@pytest.mark.parametrize("operation", [*SUMS, "relu", "max_pool_forward"])
def test_large_numbers_are_not_clipped(operation):
    rejected(operation, spoiled(operation, output=lambda a: np.clip(a, -1e6, 1e6)))


@pytest.mark.parametrize("operation", [*FORWARD, *INPUT, *WEIGHTS])
def test_denormal_numbers_are_not_zero(operation):
    def flushed(name, array):
        array[abs(array) < 1e-38] = 0
        return array

    rejected(operation, spoiled(operation, flushed))


@pytest.mark.parametrize("operation", CONTRACT)
def test_a_nan_is_not_swallowed(operation):
    wrong = spoiled(operation, lambda name, a: a if name == "labels" else np.nan_to_num(a))
    assert "NaN" in rejected(operation, wrong)


def test_a_nan_that_is_not_the_last_of_its_window_is_not_swallowed():
    def last_alone(x, z, stride=4):
        for n, c, p, q in np.ndindex(z.shape):
            seen = x[n, c, p * stride : (p + 1) * stride, q * stride : (q + 1) * stride].ravel()
            z[n, c, p, q] = seen[-1] if np.isnan(seen[-1]) else np.nanmax(seen)

    assert "NaN" in rejected("max_pool_forward", last_alone)


def test_minus_zero_is_zero():
    def by_sign(y, dy, dz):
        dz[:] = np.where(np.signbit(y) & ~np.isnan(y), 0, dy)

    assert "−0" in rejected("relu_backward", lambda y, dy, dz: by_sign(np.where(y, y, -y), dy, dz))


def series(z, y):
    """The Taylor polynomial of degree 9."""
    y[:] = 1 / 2 + z / 4 - z**3 / 48 + z**5 / 480 - 17 * z**7 / 80640 + 31 * z**9 / 1451520


def exponential(z, y):
    e = np.exp(z)
    y[:] = e / (1 + e)


@pytest.mark.parametrize("wrong", [series, exponential])
def test_a_sigmoid_that_is_right_near_zero_only(wrong):
    rejected("sigmoid", wrong)


@pytest.mark.parametrize("least", [0, 1e-30, 1e-7])
def test_the_loss_is_clipped_as_the_contract_says(least):
    def answer(y, labels, dz):
        onehot = np.arange(y.shape[1]) == labels[:, None]
        dz[:] = y - onehot
        likely = np.where(onehot, y, 1 - y).astype(np.float64)
        return -np.log(np.maximum(likely, least)).sum()

    assert "loss: expected" in rejected("cross_entropy", answer)


# --- ways out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way_out", [SystemExit("enough"), StopIteration(), MemoryError("none")])
def test_an_answer_that_leaves_is_wrong(way_out):
    def answer(z, y):
        raise way_out

    assert f"raised {type(way_out).__name__}" in rejected("relu", answer)


def test_an_interrupt_of_the_learner_passes():
    def answer(z, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.kernel("relu", answer)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer that interrupts")
def test_an_answer_that_never_ends_is_stopped():
    def answer(z, y):
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    said = rejected("relu", answer, patience=0.2)
    assert "not done after 0.2 seconds, at one square image (N=1" in said
