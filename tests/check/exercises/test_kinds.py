import numba
import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.check import kinds, threads
from cnnlab.kernels import loops


@pytest.fixture(autouse=True)
def no_tries_yet():
    kinds.TRIES.clear()


@kinds.number("Add.", "Add two and two.")
def two_and_two():
    """Two pairs
    make four."""
    return 2 + 2


@kinds.formula(lambda rng: {"p": rng.uniform(0.1, 0.9), "n": int(rng.integers(2, 99))}, "Think.")
def limit(p, n):
    return 1 / (1 - p + p / n)


@kinds.choice(["loops", "vector", "threads"], "Which has lanes?")
def fastest():
    return "vector"


@kinds.choice(["loops", "vector", "threads"], "Slowest first.")
def order():
    return ["loops", "vector", "threads"]


@kinds.labels(["even", "odd", "prime"], ["is it in the row of two?", "and this?"], "Divide.")
def marked():
    return ["odd", "even"]


@kinds.kernel("dense_backward_bias", "Sum over the images.")
def bias(dz, db):
    db[:] = dz.sum(axis=0)


@kinds.tested(lambda answer: "" if answer(3) == 9 else f"3 became {answer(3)}", "Multiply.")
def square(x):
    return x * x


SOURCE = """
extern "C" __global__ void sb(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""
UNGUARDED = SOURCE.replace("if (i < size) ", "")


@kinds.cuda_c("sigmoid_backward", lambda k, y, dy, dz: k.over("sb", y.size, y, dy, dz, y.size), "!")
def sb():
    return SOURCE


ALL = [two_and_two, limit, fastest, order, marked, bias, square, sb]


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.name)
def test_the_model_answer_is_right_and_dots_are_none_yet(exercise, capsys):
    assert exercise(exercise.model())
    assert "Hint" not in capsys.readouterr().out
    assert not exercise(...) and not exercise(None)
    assert capsys.readouterr().out == 2 * f"✗ {exercise.name}: not yet answered\n"
    assert not kinds.TRIES


def test_a_second_wrong_try_gets_another_hint_and_dots_are_no_try(capsys):
    for answer in (5, ..., 3, 99):
        assert not two_and_two(answer)
    first, dots, second, third = capsys.readouterr().out.strip().split("✗ ")[1:]
    assert "5 is too large\n  Hint: Add.\n" in first and "Hint" not in dots
    assert "3 is too small" in second and "Hint: Add two and two." in second
    assert "Hint: Add two and two." in third and "4" not in third
    assert two_and_two(4)
    assert capsys.readouterr().out == "✓ two and two: 4\n  Two pairs make four.\n"
    assert not two_and_two(5) and "Hint: Add.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "exercise, wrong, word",
    [
        (two_and_two, "four", "expected a number, got 'four'"),
        (limit, 4.2, "expected a function of p, n, got 4.2"),
        (limit, lambda p, n: 1 / (1 - p), "is too large"),
        (limit, lambda p: p, "raised TypeError"),
        (limit, lambda p, n: "half", "expected a number, got 'half'"),
        (fastest, "loops", "fastest: loops"),
        (fastest, "Vector", "expected one of loops, vector, threads, got 'Vector'"),
        (fastest, 7, "expected one of"),
        (order, ["vector", "loops", "threads"], "vector, loops, threads"),
        (order, "vector", "expected 3 of loops, vector, threads"),
        (marked, ["odd", "odd"], "1 of 2 right; 2 is not odd: and this?\n  Hint: Divide."),
        (marked, ["even", ...], "0 of 2 right; 1 is not even: is it in the row of two?"),
        (marked, ["odd", ...], "1 of 2 right\n"),
        (marked, [..., ...], "not yet answered\n"),
        (marked, ["odd"], "expected 2 of even, odd, prime, got ['odd']"),
        (marked, ["odd", "Even"], "expected 2 of"),
        (bias, lambda dz, db: None, "not yet answered"),
        (bias, lambda dz, db: dz.sum(0), "never written"),
        (bias, loops.dense_backward_bias, "expected a kernel of your own"),
        (bias, 7, "raised TypeError"),
        (square, lambda x: x, "3 became 3"),
        (square, 7, "raised TypeError"),
        (sb, bias, "expected the kernels of %%cuda"),
        (sb, cuda.Kernels(UNGUARDED), "out of bounds"),
    ],
)
def test_wrong_answers_of_any_type_are_told_why(exercise, wrong, word, capsys):
    assert exercise(wrong) is False
    assert word in capsys.readouterr().out


def test_a_formula_is_tried_on_fresh_numbers():
    drawn = []

    def noting(p, n):
        drawn.append((p, n))
        return 1 / (1 - p + p / n)

    assert limit(noting) and limit(noting)
    assert len(set(drawn)) == 2 * kinds.FRESH


def test_an_exercise_may_ask_for_more_than_numbers(capsys):
    threaded = kinds.kernel("sigmoid", "Two threads.", by=threads.kernel)(lambda z, y: None)

    @numba.njit
    def one(z, y):
        for i in range(z.size):
            y.reshape(-1)[i] = 1 / (1 + np.exp(-z.reshape(-1)[i]))

    assert not threaded(one) and "not parallel" in capsys.readouterr().out


def test_stubs_are_not_yet_answers():
    def documented(x):
        """What it should do."""

    def passed(x):
        pass

    def dotted(x): ...

    def some(x):
        return 0

    stubs = [documented, passed, dotted, numba.njit(dotted), ..., None]
    assert all(map(kinds.empty, stubs))
    assert not any(map(kinds.empty, [some, numba.njit(some), 0, "", [], len]))


def test_an_exercise_without_a_hint_is_refused():
    with pytest.raises(ValueError, match="hints: expected at least one, got none"):
        kinds.number()


def test_an_answer_in_cuda_c_has_traces_for_a_picture():
    [trace] = sb.traces(cuda.Kernels(SOURCE))
    assert trace.kernel == "sb" and not trace.faults() and len(trace) == 3 * 2 * 8 * 1
