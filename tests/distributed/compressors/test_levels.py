import numpy as np
import pytest

from cnnlab.distributed.compressors import compressor


def sent(made, values):
    """What arrives of these values."""
    out = np.empty_like(values)
    made.decode(made.encode(values), out)
    return out


def drawn(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize(
    "text, most", [("qsgd2", 1), ("qsgd4", 7), ("qsgd8", 127), ("terngrad", 1)]
)
def test_by_chance_the_mean_is_right_and_no_value_is_off_by_a_level(text, most):
    values, n_messages = drawn(700), 2000
    made = compressor(text)(700, seed=5)
    total = np.zeros(700)
    unit = (
        abs(values).max() / most
        if text == "terngrad"
        else np.repeat([abs(values[:512]).max(), abs(values[512:]).max()], [512, 188]) / most
    )
    for _ in range(n_messages):
        got = sent(made, values)
        assert (abs(got - values) <= unit * (1 + 1e-5)).all()
        total += got
    # The variance of a level rounded by chance is at most a quarter of its square.
    off = abs(total / n_messages - values) / (unit / 2 / n_messages**0.5)
    assert off.max() < 5


def test_the_nearest_level_is_off_by_half_a_level_at_most_and_always_the_same():
    values, made = drawn(512), compressor("int8")(512)
    first = sent(made, values)
    assert abs(first - values).max() <= abs(values).max() / 127 / 2 * (1 + 1e-5)
    np.testing.assert_array_equal(first, sent(made, values))


@pytest.mark.parametrize("text", ["int8", "qsgd4", "terngrad"])
def test_zeros_stay_zero_and_nan_stays_in_its_bucket(text):
    values = np.zeros(1024, np.float32)
    made = compressor(text)(1024)
    assert (sent(made, values) == 0).all()
    values[0], values[600] = np.inf, 2
    got = sent(made, values)
    assert np.isnan(got[:512]).all()
    assert np.isnan(got[512:]).all() if text == "terngrad" else got[600] == 2


@pytest.mark.parametrize(
    "text, n, n_bytes",
    [
        ("qsgd4", 1000, 2 * 4 + 500),
        ("qsgd2", 1001, 2 * 4 + 251),
        ("int8", 512, 4 + 512),
        ("terngrad", 2428, 4 + 607),
        ("terngrad", 0, 0),
        ("qsgd4", 0, 0),
    ],
)
def test_messages_are_as_long_as_they_say(text, n, n_bytes):
    made = compressor(text)(n)
    message = made.encode(drawn(n))
    assert message.size == made.n_bytes == n_bytes
    made.decode(message, np.empty(n, np.float32))


def test_the_same_seed_sends_the_same_bits_and_each_message_has_chances_of_its_own():
    values = drawn(512)
    one, two, other = (compressor("qsgd2")(512, seed) for seed in (1, 1, 2))
    first, second = one.encode(values), one.encode(values)
    np.testing.assert_array_equal(first, two.encode(values))
    assert (first != second).any() and (first != other.encode(values)).any()


@pytest.mark.parametrize("text", ["qsgd5", "int81", "terngrad4"])
def test_bits_that_it_does_not_have_are_refused(text):
    with pytest.raises(ValueError, match=r"^compress: expected"):
        compressor(text)
