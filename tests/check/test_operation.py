import warnings

import numpy as np
import pytest

from cnnlab import check
from cnnlab.check import inputs
from cnnlab.check.operation import run_reference
from cnnlab.kernels import reference


def right(dz, db):
    db[:] = dz.sum(axis=(0, 2, 3))


def another_right(dz, db):
    for f in range(db.size):
        db[f] = sum(float(image[f].sum()) for image in dz)


def half(dz, db):
    db[:] = dz.sum(axis=(0, 2, 3)) / 2


def forward(x, w, b, z, stride=1, rows=None, columns=None):
    """The convolution in plain Python, for wrong answers to change."""
    for n, f, p, q in np.ndindex(z.shape):
        if p < (rows or z.shape[2]) and q < (columns or z.shape[3]):
            i, j, k = p * stride, q * stride, w.shape[2]
            z[n, f, p, q] = b[f] + (w[f] * x[n, :, i : i + k, j : j + k]).sum()


def changes_its_input(dz, db):
    right(dz, db)
    dz[0] = 0


def changes_its_bias(x, w, b, z, stride=1):
    reference.conv_forward(x, w, b, z, stride)
    b[:] = 0


def writes_past_the_end(dz, db):
    right(dz, db)
    db.base[inputs.GUARD + db.size] = 0


def writes_before_the_start(dz, db):
    right(dz, db)
    db.base[inputs.GUARD - 1] = 0


def reads_past_the_end(dz, db):
    flat, size = dz.base[inputs.GUARD :], dz[0, 0].size
    for f in range(db.size):
        starts = [n * dz[0].size + f * size for n in range(len(dz))]
        db[f] = sum(flat[start : start + size + 1].sum() for start in starts)


class Racy:
    """Right, except that an update is lost now and then."""

    def __init__(self):
        self.calls = 0

    def __call__(self, dz, db):
        right(dz, db)
        self.calls += 1
        if self.calls % 13 == 0:
            db[0] -= dz[0, 0, 0, 0]


def one_map_not_a_number(dz, db):
    right(dz, db)
    db[1:2] = np.nan


def infinite(dz, db):
    right(dz, db)
    db[:] = np.inf
    db[:1] = -np.inf


def changes_its_shape(dz, db):
    right(dz, db)
    with warnings.catch_warnings():  # NumPy 2.5 deprecates it, and a learner may still do it
        warnings.simplefilter("ignore")
        db.shape = (1, db.size)


def put(make):
    """An answer to conv_backward_bias that writes make(dz) to its output."""
    return lambda dz, db: np.copyto(db, make(dz))


WRONG_BIAS = [
    (changes_its_input, "changed its input dz"),
    (writes_past_the_end, "wrote outside db"),
    (writes_before_the_start, "wrote outside db"),
    (reads_past_the_end, "beyond the end of an input"),
    (lambda dz, db: dz.sum(axis=(0, 2, 3)), "db was never written"),
    (lambda dz, db: np.add(db, dz.sum(axis=(0, 2, 3)), db), "without being set to zero"),
    (Racy(), "db[0]: expected"),
    (put(lambda dz: dz.sum(axis=(0, 2, 3)) * np.float32(0.999)), "db[0]: expected"),
    (put(lambda dz: dz[0, 0, 0, 0] * dz[:, 0].size), "db[0]: expected"),  # right if all are equal
    (half, "all are 0.5 times"),
    (put(lambda dz: dz[0].sum(axis=(1, 2))), "right for several images"),
    (
        put(lambda dz: dz[:, :, : dz.shape[3], : dz.shape[2]].sum(axis=(0, 2, 3))),
        "right for images wider than high",
    ),
    (put(lambda dz: dz.reshape(dz.shape[1], -1).sum(1)), "right for several images"),
    (one_map_not_a_number, "db[1]: expected"),
    (infinite, "got -inf"),
    (changes_its_shape, "db: expected shape (1,), got (1, 1)"),
    ({}.__getitem__, "raised TypeError"),
    (lambda dz, db: {}["oops"], "raised KeyError: 'oops'"),
    (lambda dz, db: db.fill(np.nan), "never written"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("answer, word", WRONG_BIAS)
def test_a_wrong_bias_gradient_is_rejected_with_the_reason(answer, word):
    verdict = check.kernel("conv_backward_bias", answer, repeats=5)
    assert not verdict and word in str(verdict)


WRONG_FORWARD = [
    (changes_its_bias, "changed its input b"),
    (lambda x, w, b, z, stride=1: forward(x, w, 0 * b, z, stride), "the bias seems to be missing"),
    (lambda x, w, b, z, stride=1: forward(x, w, b, z, 1), "right for windows two apart"),
    (
        lambda x, w, b, z, stride=1: forward(x, w, b, z, stride, columns=z.shape[2]),
        "right for images wider than high",
    ),
    (
        lambda x, w, b, z, stride=1: forward(x, w, b, z, stride, rows=z.shape[3]),
        "right for images higher than wide",
    ),
    (lambda x, w, b, z, stride=1: forward(x, w, b, z, stride, z.shape[2] - 1), "not written"),
    (lambda x, w, b, z, stride=1: forward(x, w[:, :, ::-1], b, z, stride), "z["),
    (lambda x, w, b, z, stride=1: forward(x, w.swapaxes(2, 3), b, z, stride), "z["),
    (
        lambda x, w, b, z, stride=1: forward(x[:, :1], w[:, :1], b, z, stride),
        "right for one square image, several channels",
    ),
    (lambda x, w, b, z, stride=1: forward(x, w, b, z[:1], stride), "right for several images"),
    (lambda x, w, b, z: forward(x, w, b, z), "raised TypeError"),
]


@pytest.mark.parametrize("answer, word", WRONG_FORWARD)
def test_a_wrong_convolution_is_rejected_with_the_reason(answer, word):
    verdict = check.kernel("conv_forward", answer)
    assert not verdict and word in str(verdict)


def test_float64_is_held_to_the_rounding_of_float64():
    assert check.kernel("conv_forward", forward, dtype=np.float64)

    def in_float32(x, w, b, z, stride=1):
        single = z.astype(np.float32)
        forward(x.astype(np.float32), w.astype(np.float32), b.astype(np.float32), single, stride)
        z[:] = single

    assert not check.kernel("conv_forward", in_float32, dtype=np.float64)
    assert check.kernel("conv_forward", in_float32)


@pytest.mark.parametrize("answer", [right, another_right])
def test_right_answers_are_accepted(answer, capsys):
    check.prove("conv_backward_bias", answer)
    assert check.exercise("conv_backward_bias", answer)
    assert capsys.readouterr().out.count("✓ conv_backward_bias agrees") == 2


def test_a_verdict_tells_where_it_is_wrong_by_how_much_and_what_is_right_already():
    def last_column_wrong(x, w, b, z, stride=1):
        reference.conv_forward(x, w, b, z, stride)
        if len(z) == 3:
            z[2, 1, 3, 0] = 5

    said = str(check.kernel("conv_forward", last_column_wrong))
    assert said.startswith(
        "✗ conv_forward: not yet right for several images (N=3, C=2, F=4, H=6, W=6, K=3, stride 1):"
    )
    drawn = inputs.draw("conv_forward", inputs.CASES[2])
    exact, _ = run_reference("conv_forward", drawn, {})
    assert f": z[2, 1, 3, 0]: expected {exact[2, 1, 3, 0]:.6g}, got 5; 1 of 192 elements" in said
    assert said.endswith("It is right for one square image, several channels and filters.")


def test_swapped_axes_and_a_missing_bias_are_named_but_not_seen_where_they_are_not():
    def swapped(dz, w, dx, stride=1):
        reference.conv_backward_input(dz, w, dx, stride)
        dx[:] = dx.swapaxes(2, 3).copy()

    case = [inputs.case("square", 2, 1, 3, 6, 6, 3)]
    verdict = check.kernel("conv_backward_input", swapped, cases=case)
    assert not verdict and "right with its axes in the order (0, 1, 3, 2)" in str(verdict)
    for answer in (lambda x, w, b, z: z.fill(9), lambda x, w, b, z: np.add(x @ w[:, ::-1].T, b, z)):
        verdict = check.kernel("dense_forward", answer)
        assert not verdict and "bias" not in str(verdict) and "times" not in str(verdict)


@pytest.mark.parametrize(
    "loss", [lambda loss: 2 * loss, lambda loss: None, str, lambda loss: np.array([loss, loss])]
)
def test_a_wrong_loss_is_named(loss):
    def answer(y, labels, dz):
        return loss(reference.cross_entropy(y, labels, dz))

    verdict = check.kernel("cross_entropy", answer)
    assert not verdict and "loss: expected" in str(verdict)


def test_options_and_cases_reach_the_function():
    seen = []

    def answer(dz, db, threads):
        seen.append((dz.shape, threads, dz.sum()))
        right(dz, db)

    chosen = [inputs.CASES[3], inputs.CASES[7]]  # the second has a stride, which a bias does not
    verdict = check.kernel("conv_backward_bias", answer, cases=chosen, repeats=2, threads=4)
    assert verdict and "on 1 shapes" in str(verdict)
    assert [call[:2] for call in seen] == [((2, 2, 3, 9), 4)] * 2
    assert seen[0][2] != seen[1][2]
    assert 0 <= verdict.largest_error < 1e-5


def test_a_wrong_kernel_in_a_lesson_stops_it_and_an_open_exercise_does_not(capsys):
    with pytest.raises(AssertionError, match="✗ conv_backward_bias"):
        check.prove("conv_backward_bias", half)
    assert check.exercise("conv_backward_bias", lambda dz, db: None) is False
    assert "✗" in capsys.readouterr().out


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match=r"operation: expected one of conv_forward.*got 'conv'"):
        check.kernel("conv", right)


def test_normwise_allows_the_rounding_of_the_largest_element_everywhere():
    def smeared(x, w, b, z, by=2e-7):
        reference.conv_forward(x, w, b, z)
        z += by * abs(z).max()

    case = inputs.case("", 2, 1, 9, 9, 9, 1)
    assert not check.try_case("conv_forward", smeared, case)
    assert check.try_case("conv_forward", smeared, case, normwise=1)
    assert not check.try_case("conv_forward", smeared, case, normwise=1, by=1e-4)
    assert check.kernel("conv_forward", smeared, cases=[case], normwise=1)
