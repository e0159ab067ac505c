import numba
import numpy as np
import pytest

from cnnlab import check
from cnnlab.kernels import reference


def right(dz, db):
    reference.conv_backward_bias(dz, db)


def half(dz, db):
    db[:] = dz.sum(axis=(0, 2, 3)) / 2


def test_a_verdict_tells_where_it_is_wrong_by_how_much_and_what_is_right_already():
    def last_column_wrong(x, w, b, z, stride=1):
        reference.conv_forward(x, w, b, z, stride)
        if len(z) == 3:
            z[2, 1, 3, 0] = 5

    said = str(check.kernel("conv_forward", last_column_wrong))
    assert said.startswith(
        "✗ conv_forward: not yet right for several images (N=3, C=2, F=4, H=6, W=6, K=3, stride 1):"
    )
    drawn = check.draw("conv_forward", check.CASES[2])
    exact, _ = check.run_reference("conv_forward", drawn, {})
    assert f": z[2, 1, 3, 0] should be {exact[2, 1, 3, 0]:.6g}, got 5; 1 of 192 elements" in said
    assert said.endswith("It is right for one square image, several channels and filters.")


def test_swapped_axes_and_a_missing_bias_are_named_but_not_seen_where_they_are_not():
    def swapped(dz, w, dx, stride=1):
        reference.conv_backward_input(dz, w, dx, stride)
        dx[:] = dx.swapaxes(2, 3).copy()

    case = [check.case("square", 2, 1, 3, 6, 6, 3)]
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
    assert not verdict and "the loss should be" in str(verdict)


def test_options_and_cases_reach_the_function():
    seen = []

    def answer(dz, db, threads):
        seen.append((dz.shape, threads))
        right(dz, db)

    cases = [check.CASES[3], check.CASES[7]]  # the second has a stride, which a bias does not
    verdict = check.kernel("conv_backward_bias", answer, cases=cases, repeats=2, threads=4)
    assert verdict and "on 1 shapes" in str(verdict)
    assert seen == [((2, 2, 3, 9), 4)] * 2
    assert 0 <= verdict.largest_error < 1e-5


def test_drawn_numbers_differ_between_seeds_and_between_elements():
    case = check.CASES[-1]
    for operation in check.CONTRACT:
        *inputs, output = check.draw(operation, case).items()
        again, other = check.draw(operation, case), check.draw(operation, case, seed=1)
        assert np.isnan(output[1]).all()
        for name, array in inputs:
            assert (array == again[name]).all() and (array != other[name]).any()
            assert len(np.unique(array)) > (1 if array.dtype == np.int64 else 0.9 * array.size)


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
        ([6, 6], False, "a number is wanted"),
        (float("nan"), False, "a number is wanted"),
        (np.float32(6), True, "because"),
        (6 + 1e-6, True, "because"),
        (6 + 1e-4, False, "too large"),
    ],
)
def test_an_answer_in_numbers(got, passed, word, capsys):
    assert check.value("apples", got, 6, why="because") is passed
    assert word in capsys.readouterr().out


def test_a_small_number_is_not_zero():
    assert check.value("seconds", 1e-9, 1e-9) and not check.value("seconds", 0, 1e-9)
    assert check.value("about", 5.9, 6, rtol=0.05) and not check.value("about", 5.5, 6, rtol=0.05)


def test_vector_instructions_are_wanted_of_a_right_numba_kernel_only(capsys):
    @numba.njit(fastmath=True, error_model="numpy")
    def fast(y, dy, dz):
        y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
        for m in range(y.size):
            dz[m] = dy[m] * y[m] * (np.float32(1) - y[m])

    @numba.njit
    def slow(y, dy, dz):
        for n, c, h in np.ndindex(y.shape):
            dz[n, c, h] = dy[n, c, h] * y[n, c, h] * (1.0 - np.float64(y[n, c, h]))

    for answer, word in (
        (fast, "vector instructions"),
        (slow, " 0 vector instructions"),
        (reference.sigmoid_backward, "decorate it with @numba.njit"),
        (lambda y, dy, dz: None, "never written"),
    ):
        assert check.vectorized("sigmoid_backward", answer) is (answer is fast)
        assert word in capsys.readouterr().out
