import numpy as np
import pytest

from cnnlab import check
from cnnlab.kernels import reference


def right(dz, db):
    reference.conv_backward_bias(dz, db)


def another_right(dz, db):
    for f in range(db.size):
        db[f] = sum(float(image[f].sum()) for image in dz)


def forward(x, w, b, z, stride=1, rows=None, columns=None):
    """The convolution in plain Python, to be spoiled."""
    for n, f, p, q in np.ndindex(z.shape):
        if p < (rows or z.shape[2]) and q < (columns or z.shape[3]):
            i, j, k = p * stride, q * stride, w.shape[2]
            z[n, f, p, q] = b[f] + (w[f] * x[n, :, i : i + k, j : j + k]).sum()


def changes_its_input(dz, db):
    right(dz, db)
    dz[0] = 0


def writes_outside(dz, db):
    right(dz, db)
    db.base[check.GUARD + db.size] = 0


def returns_a_new_array(dz, db):
    return dz.sum(axis=(0, 2, 3))


def adds_without_zeroing(dz, db):
    db += dz.sum(axis=(0, 2, 3))


def sometimes_loses_an_update(dz, db, calls=[]):  # noqa: B006
    calls.append(1)
    right(dz, db)
    if len(calls) % 13 == 0:
        db -= 1


def only_when_all_are_equal(dz, db):
    db[:] = dz[0, 0, 0, 0] * dz[:, 0].size


def half(dz, db):
    db[:] = dz.sum(axis=(0, 2, 3)) / 2


def first_image_only(dz, db):
    db[:] = dz[0].sum(axis=(1, 2))


def fails(dz, db):
    raise KeyError("oops")


WRONG_BIAS = [
    (changes_its_input, "changed its input dz"),
    (writes_outside, "wrote outside db"),
    (returns_a_new_array, "never written"),
    (adds_without_zeroing, "without being set to zero"),
    (sometimes_loses_an_update, "db["),
    (only_when_all_are_equal, "db[0] should be"),
    (half, "all are 0.5 times"),
    (first_image_only, "several images"),
    (fails, "raised KeyError"),
    (lambda dz, db: db.fill(np.nan), "never written"),
]


@pytest.mark.parametrize("answer, word", WRONG_BIAS)
def test_a_wrong_bias_gradient_is_rejected_with_the_reason(answer, word):
    verdict = check.kernel("conv_backward_bias", answer, repeats=5)
    assert not verdict and word in str(verdict)


WRONG_FORWARD = [
    (lambda x, w, b, z, stride=1: forward(x, w, 0 * b, z, stride), "as if a bias were missing"),
    (lambda x, w, b, z, stride=1: forward(x, w, b, z, 1), "windows two apart"),
    (
        lambda x, w, b, z, stride=1: forward(x, w, b, z, stride, columns=z.shape[2]),
        "wider than high",
    ),
    (lambda x, w, b, z, stride=1: forward(x, w, b, z, stride, z.shape[2] - 1), "not written"),
    (lambda x, w, b, z, stride=1: forward(x, w[:, :, ::-1], b, z, stride), "z["),
    (lambda x, w, b, z, stride=1: forward(x[:, :1], w[:, :1], b, z, stride), "several channels"),
    (lambda x, w, b, z: forward(x, w, b, z), "raised TypeError"),
]


@pytest.mark.parametrize("answer, word", WRONG_FORWARD)
def test_a_wrong_convolution_is_rejected_with_the_reason(answer, word):
    verdict = check.kernel("conv_forward", answer)
    assert not verdict and word in str(verdict)


def test_swapped_axes_are_named():
    def swapped(x, dz, dw):
        dw[:] = (x.T @ dz).reshape(dw.shape)

    verdict = check.kernel("dense_backward_weights", swapped)
    assert not verdict and "dw[" in str(verdict)


def test_a_wrong_loss_is_named():
    def twice(y, labels, dz):
        return 2 * reference.cross_entropy(y, labels, dz)

    verdict = check.kernel("cross_entropy", twice)
    assert not verdict and "the loss should be" in str(verdict)


@pytest.mark.parametrize("answer", [right, another_right])
def test_right_answers_are_accepted(answer, capsys):
    check.prove("conv_backward_bias", answer)
    assert check.exercise("conv_backward_bias", answer)
    assert capsys.readouterr().out.count("✓ conv_backward_bias agrees") == 2


def test_a_wrong_kernel_in_a_lesson_stops_it_and_an_open_exercise_does_not(capsys):
    with pytest.raises(AssertionError, match="✗ conv_backward_bias"):
        check.prove("conv_backward_bias", half)
    assert check.exercise("conv_backward_bias", lambda dz, db: None) is False
    assert "✗" in capsys.readouterr().out


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match=r"one of conv_forward.*got 'conv'"):
        check.kernel("conv", right)


@pytest.mark.parametrize(
    "got, passed, word",
    [
        (6.0, True, "because"),
        (5, False, "too small"),
        (7, False, "too large"),
        (..., False, "not yet"),
        (None, False, "not yet"),
        ("six", False, "a number is wanted"),
    ],
)
def test_an_answer_in_numbers(got, passed, word, capsys):
    assert check.value("apples", got, 6, why="because") is passed
    assert word in capsys.readouterr().out
