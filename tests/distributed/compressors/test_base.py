import numpy as np
import pytest

from cnnlab.distributed.compressors import COMPRESSORS, compressor


def test_none_changes_nothing_and_halves_round():
    values = np.array([1, 1 + 2**-11, 1e-9, 70_000, -np.inf, np.nan], np.float32)
    got = np.empty_like(values)
    whole, half = compressor("none")(6), compressor("fp16")(6)
    whole.decode(whole.encode(values), got)
    np.testing.assert_array_equal(got, values)
    half.decode(half.encode(values), got)
    np.testing.assert_array_equal(got, np.array([1, 1, 0, np.inf, -np.inf, np.nan], np.float32))
    assert (whole.n_bytes, half.n_bytes) == (24, 12)


def test_a_message_is_the_senders_no_more():
    values, got = np.ones(4, np.float32), np.empty(4, np.float32)
    made = compressor("none")(4)
    message = made.encode(values)
    values[:] = 2
    made.decode(message, got)
    assert (got == 1).all()


@pytest.mark.parametrize("text", ["nope", "fp164", "topk:2", "topk:x", "topk:0", "none3", "", "4"])
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^compress: expected"):
        compressor(text)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_each_of_them_stands_for_its_numbers_and_leaves_them_alone(name):
    values = np.random.default_rng(3).standard_normal(2428).astype(np.float32)
    made, kept, got = compressor(name)(2428), values.copy(), np.empty_like(values)
    made.decode(made.encode(values), got)
    np.testing.assert_array_equal(values, kept)
    assert np.corrcoef(got, values)[0, 1] > 0.2
