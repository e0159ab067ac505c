"""What is sealed is recognised by a right answer, and by nothing else."""

import ast

import numpy as np
import pytest

from cnnlab.check import sealed
from cnnlab.check.verdict import number_verdict


@pytest.mark.parametrize("value", [0.0, 1, -3.5, 1e-9, 2**60, 40.0, float("inf"), -1e300])
@pytest.mark.parametrize("rtol", [1e-6, 1e-3, 0.02])
def test_a_sealed_number_opens_within_its_tolerance_and_only_there(value, rtol):
    locked = sealed.number("here", value, rtol)
    for by in (-0.99, -0.5, 0, 0.5, 0.99):
        assert locked.opened(value * (1 + by * rtol)) == value
    for by in (-9, -5, 5, 9):
        wrong = value * (1 + by * rtol) if value and np.isfinite(value) else by
        assert locked.opened(wrong) is None
    assert locked.opened(-value) in ((None,) if value else (0.0,))


def test_the_verdict_on_a_sealed_number_is_that_on_the_number():
    rng = np.random.default_rng(0)
    for value, by in zip(rng.uniform(-50, 50, 50), rng.uniform(-2, 2, 50), strict=True):
        locked, got = sealed.number("here", value, 0.01), value * (1 + 0.01 * by)
        assert bool(number_verdict("x", got, locked, 0.01)) == (abs(by) <= 1)
    assert "is not right" in number_verdict("x", 7, sealed.number("here", 3, 1e-6), 1e-6).text


def test_what_is_sealed_is_not_in_the_seal():
    locked = sealed.number("here", 1024.0, 1e-6)
    assert locked != sealed.number("there", 1024.0, 1e-6)
    assert "1024" not in str(locked) and np.float64(1024).tobytes().hex() not in locked.seal
    assert "secret" not in str(sealed.word("here", "secret"))


def test_a_sealed_word_equals_itself():
    locked = sealed.word("here", "reduce")
    assert ["reduce"] == [locked] and "reduce" == locked
    assert ["division"] != [locked] and locked != sealed.word("here", "reduce")


def test_a_table_draws_its_rows_and_knows_their_numbers():
    rows = [({"n": n}, sealed.number(str(n), n**2, 1e-6)) for n in range(5)]
    table = sealed.Table(rows)
    given = table.draw(np.random.default_rng(0))
    assert table.of(given).opened(given["n"] ** 2) == given["n"] ** 2


VALUES = [
    3, 2.5, "word", None, True, [1, (2, 3)], {1, 2}, {("a", 1): 2.0, 3: {4: 5}},
    np.arange(3, dtype=np.uint8), np.ones((2, 2), np.float32),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_are_read_as_they_were_written(value):
    again = sealed.read(ast.literal_eval(repr(sealed.written(value))))
    assert type(again) is type(value) and sealed.same(again, value)
    if isinstance(value, np.ndarray):
        assert again.dtype == value.dtype


def test_what_has_no_literals_is_not_written():
    with pytest.raises(TypeError, match="expected numbers, words, arrays"):
        sealed.written(object())


def test_values_are_the_same_up_to_rounding_and_the_order_of_places():
    assert sealed.same(0.3, 0.1 + 0.2) and not sealed.same(0.3, 0.3001)
    assert not sealed.same(None, 1.0) and not sealed.same(0.0, None)
    assert not sealed.same([1.0], [1.0, 2.0]) and not sealed.same(1.0, [1.0])
    places = np.array([4, 1]), np.array([0.4, 0.1])
    assert sealed.same(tuple(part[::-1] for part in places), places)
    assert not sealed.same((places[0], places[1][::-1]), places)


def scaled(x, by):
    x *= by


def test_examples_look_at_arguments_and_at_what_is_returned():
    def call(*parts):
        return tuple(map(sealed.written, parts))

    start = np.array([1.0, 2.0])
    test = sealed.examples([call([start, 3], [3 * start, 3], None)])
    assert test(scaled) == ""
    assert test(lambda x, by: x.__imul__(by)) == ""  # what it returns does not matter
    assert "argument 1 should become [3. 6.], got [1. 2.]" in test(lambda x, by: x * by)
    test = sealed.examples([call([2], [2], 4), call([3], [3], 9)])
    assert test(lambda n: n * n) == ""
    assert test(lambda n: 2 * n) == "example 2 of 2: expected 9, got 6"


def test_a_recorded_function_knows_where_it_was_called():
    slope = sealed.Recorded([], lambda x: 2 * x)
    slope(np.array([1.0, 2.0]))
    again = sealed.read(sealed.written(slope))
    assert again(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match=r"called at \[7. 8.\], where nobody needs it"):
        again(np.array([7.0, 8.0]))
