import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.distributed.compressors import compressor, topk

NUMBERS = st.lists(st.floats(-8, 8, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40]))


@given(NUMBERS, st.data())
def test_the_largest_are_chosen_and_of_equals_the_first(numbers, data):
    values = np.array(numbers, np.float32)
    k = data.draw(st.integers(0, values.size))
    places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
    topk.select(values, places, chosen)
    expected = sorted(np.argsort(-abs(values), kind="stable")[:k])
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(chosen, values[expected])


ODD = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "rising": lambda rng, n: np.arange(n),
    "all equal": lambda rng, n: np.ones(n),
    "all zero": lambda rng, n: np.zeros(n),
    "the largest are far apart": lambda rng, n: 9.0 * (np.arange(n) % 61 == 0) + 1,
    "many are large": lambda rng, n: 9.0 * (np.arange(n) % 61 == 1) + rng.random(n),
    "the largest are beside each other": lambda rng, n: (
        9.0 * (np.arange(n) < n // 9) + rng.random(n)
    ),
    "NaN": lambda rng, n: np.where(np.arange(n) % 500 == 7, np.nan, rng.random(n)),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("k", [1, 20, 400, 2000])
def test_of_many_too_wherever_the_largest_are(kind, k):
    values = ODD[kind](np.random.default_rng(5), 20_000).astype(np.float32)
    places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
    topk.select(values, places, chosen)
    size = np.where(np.isnan(values), np.inf, abs(values))
    expected = np.sort(np.argsort(-size, kind="stable")[:k])
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(chosen, values[expected])


def test_nan_is_told():
    values = np.arange(9, dtype=np.float32)
    values[2] = np.nan
    made, got = compressor("topk:0.1")(9), np.empty(9, np.float32)
    made.decode(made.encode(values), got)
    assert np.isnan(got[2]) and (np.delete(got, 2) == 0).all()


def test_what_is_not_sent_is_sent_later():
    rng, made = np.random.default_rng(1), compressor("topk:0.02")(500)
    given, arrived, got = np.zeros(500), np.zeros(500), np.empty(500, np.float32)
    steady = rng.standard_normal(500).astype(np.float32)
    for _ in range(400):
        made.decode(made.encode(steady), got)
        assert (got != 0).sum() <= 10
        given, arrived = given + steady, arrived + got
    np.testing.assert_allclose(arrived + made.residual, given, atol=1e-2)
    assert (arrived != 0).mean() > 0.9 and np.corrcoef(arrived, given)[0, 1] > 0.9


def test_a_message_is_as_long_as_it_says():
    made = compressor("topk:0.01")(2428)
    assert made.encode(np.ones(2428, np.float32)).size == made.n_bytes == 24 * 8
