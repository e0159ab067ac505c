"""Compressors: what arrives, what is kept for later, how long messages are, and what is refused."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnnlab.distributed.compressors import COMPRESSORS, base, compressor, topk
from cnnlab.distributed.compressors.topk import DeepGradientCompression


def drawn(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def sent(made, values):
    """What arrives of these values."""
    out = np.empty_like(values)
    made.decode(made.encode(values), out)
    return out


@pytest.mark.parametrize(
    "text",
    "nope fp164 topk:2 topk:x topk:0 none3 4 qsgd5 int81 terngrad4 topq:0 topq:513 topq:x topq:1.5 "
    "dgc:2 dgc:0.1, dgc:0.1,x dgc:,5 dgc:0.1,2,3 ".split(" "),
)
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^compress: expected"):
        compressor(text)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_each_of_them_stands_for_its_numbers_and_leaves_them_alone(name):
    values = drawn(2428, 3)
    kept, got = values.copy(), sent(compressor(name)(2428), values)
    np.testing.assert_array_equal(values, kept)
    assert np.corrcoef(got, values)[0, 1] > 0.2


@pytest.mark.parametrize(
    "text, n, n_bytes",
    [
        ("none", 6, 24),
        ("fp16", 6, 12),
        ("qsgd4", 1000, 2 * 4 + 500),
        ("qsgd4", 0, 0),
        ("qsgd2", 1001, 2 * 4 + 251),
        ("int8", 512, 4 + 512),
        ("terngrad", 2428, 4 + 607),
        ("terngrad", 0, 0),
        ("one_bit", 2428, 5 * 8 + 304),
        ("topk:0.01", 2428, 24 * 8),
        ("topq:16", 512, 4 + 16 * 2.5),  # two and a half bytes a number
        ("topq:16", 514, 4 + 40 + 4 + 5),
    ],
)
def test_messages_are_as_long_as_they_say(text, n, n_bytes):
    made = compressor(text)(n)
    message = made.encode(drawn(n))
    assert message.nbytes == made.n_bytes == n_bytes
    made.decode(message, np.empty(n, np.float32))


@pytest.mark.parametrize("text", ["one_bit", "topk:0.02", "topq:16", "streams:0.02"])
def test_what_is_not_sent_is_sent_later_and_does_not_pile_up(text):
    n, made = 1300, compressor(text)(1300)
    total, arrived = np.zeros((2, n))
    for step in range(100):
        values = drawn(n, step)
        kept = values.copy()
        if made.streams:
            places, chosen = made.choose(values, 1, 1)
            assert places.size == 26 and (np.diff(places) > 0).all()
            assert (made.residual[places] == 0).all() and made.n_messages == step + 1
            arrived[places] += chosen
        else:
            arrived += sent(made, values)
        np.testing.assert_array_equal(values, kept)
        total += values
        np.testing.assert_allclose(arrived + made.residual, total, atol=1e-3)
    assert made.state["residual"] is made.residual
    assert abs(made.residual).max() < 60


def test_none_changes_nothing_and_halves_round():
    values = np.array([1, 1 + 2**-11, 1e-9, 70_000, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(sent(compressor("none")(6), values), values)
    halves = np.array([1, 1, 0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(sent(compressor("fp16")(6), values), halves)


def test_a_message_is_the_senders_no_more():
    values, got, made = np.ones(4, np.float32), np.empty(4, np.float32), compressor("none")(4)
    message = made.encode(values)
    values[:] = 2
    made.decode(message, got)
    assert (got == 1).all()


# --- levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, most", [("qsgd2", 1), ("qsgd4", 7), ("qsgd8", 127), ("terngrad", 1)]
)
def test_by_chance_the_mean_is_right_and_no_value_is_off_by_a_level(text, most):
    values, n_messages = drawn(700), 2000
    made, total = compressor(text)(700, seed=5), np.zeros(700)
    buckets = [values] if text == "terngrad" else [values[:512], values[512:]]
    unit = np.concatenate([np.full(len(b), abs(b).max() / most) for b in buckets])
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


@pytest.mark.filterwarnings("ignore:invalid value")  # ∞ − ∞, in what one bit keeps
@pytest.mark.parametrize("odd", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("text", ["int8", "qsgd4", "terngrad", "one_bit"])
def test_zeros_stay_zero_and_what_is_not_finite_stays_in_its_bucket(text, odd):
    values, made = np.zeros(1024, np.float32), compressor(text)(1024)
    assert (sent(made, values) == 0).all()
    values[0], values[512:] = odd, 2
    got = sent(made, values)
    assert not np.isfinite(got[:512]).any()
    assert np.isnan(got[512:]).all() if text == "terngrad" else (got[512:] == 2).all()


def test_the_same_seed_sends_the_same_bits_and_each_message_has_chances_of_its_own():
    values = drawn(512)
    one, two, other = (compressor("qsgd2")(512, seed) for seed in (1, 1, 2))
    first, second = one.encode(values), one.encode(values)
    np.testing.assert_array_equal(first, two.encode(values))
    assert (first != second).any() and (first != other.encode(values)).any()


def test_chances_are_even_and_differ_from_seed_to_seed():
    uniform = base.uniform.py_func
    with np.errstate(over="ignore"):  # whole numbers wrap round
        first, second = (
            np.array([uniform(i, seed) for i in range(4000)]) for seed in (np.uint32(1), 2)
        )
    for chances in (first, second):
        assert chances.min() >= 0 and chances.max() < 1
        counts = np.histogram(chances, 10, (0, 1))[0]
        assert abs(counts - 400).max() < 5 * 400**0.5
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.08
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.08


@pytest.mark.parametrize("most", [1, 7, 127])
def test_no_level_is_above_the_highest(monkeypatch, most):
    # In float32, the highest level and the largest chance add up to one level more.
    monkeypatch.setattr(base, "uniform", lambda i, seed: np.float32(1 - 2**-24))
    codes, values = np.zeros(4, np.uint8), np.float32([1, -1, 0.1, 0])
    base.quantise.py_func(values, 4, np.float32([1]), most, 1, codes)
    assert codes[:2].tolist() == [2 * most, 2 * most + 1] and codes[3] == 0
    scales = np.float32([np.nextafter(np.float32(1), np.float32(0))])  # most / scale rounds up
    base.quantise.py_func(values[:2], 2, scales, most, 1, codes[:2])
    assert codes[:2].tolist() == [2 * most, 2 * most + 1]


def test_one_bit_keeps_the_sum_and_the_signs_of_a_bucket():
    values = drawn(1300)
    got = sent(compressor("one_bit")(1300), values)
    np.testing.assert_array_equal(got < 0, values < 0)
    for b in range(0, 1300, 512):
        assert len(set(got[b : b + 512].tolist())) == 2
        np.testing.assert_allclose(got[b : b + 512].sum(), values[b : b + 512].sum(), rtol=1e-3)


# --- the largest ----------------------------------------------------------------------------------

NUMBERS = st.lists(st.floats(-8, 8, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40]))


@given(NUMBERS, st.data())
def test_the_largest_are_chosen_and_of_equals_the_first(numbers, data):
    values = np.array(numbers, np.float32)
    chosen_as_by_sorting(values, data.draw(st.integers(0, values.size)))


def chosen_as_by_sorting(values, k):
    places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
    topk.select(values, places, chosen)
    size = np.where(np.isnan(values), np.inf, abs(values))
    expected = np.sort(np.argsort(-size, kind="stable")[:k])
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(chosen, values[expected])


WHERE = np.arange(20_000)
ODD = {
    "rising": lambda noise: WHERE,
    "all equal": lambda noise: np.ones(20_000),
    "all zero": lambda noise: np.zeros(20_000),
    "the largest are far apart": lambda noise: 9.0 * (WHERE % 61 == 0) + 1,
    "many are large": lambda noise: 9.0 * (WHERE % 61 == 1) + noise,
    "the largest are beside each other": lambda noise: 9.0 * (WHERE < 2222) + noise,
    "NaN": lambda noise: np.where(WHERE % 500 == 7, np.nan, noise),
}


@settings(max_examples=40)
@given(st.sampled_from(list(ODD)), st.sampled_from([1, 20, 400, 2000]), st.integers(0, 9))
def test_of_many_too_wherever_the_largest_are(kind, k, seed):
    noise = np.random.default_rng(seed).random(20_000)
    chosen_as_by_sorting(ODD[kind](noise).astype(np.float32), k)


def test_nan_arrives_and_is_not_kept():
    values = np.arange(9, dtype=np.float32)
    values[2] = np.nan
    got = sent(compressor("topk:0.1")(9), values)
    assert np.isnan(got[2]) and (np.delete(got, 2) == 0).all()
    made = compressor("streams:0.1")(9)
    made.choose(values, 1, 1)
    assert np.isfinite(made.residual).all()


@given(st.integers(0, 1300), st.integers(0, 9))
def test_of_each_bucket_its_own_largest_arrive_in_four_bits(n, seed):
    made, values, got = compressor("topq:16")(n), drawn(n, seed), np.empty(n, np.float32)
    message = made.encode(values)
    compressor("topq:16")(n, seed=9).decode(message, got)  # a reader that has sent nothing
    for start in range(0, n, 512):
        part, arrived = values[start : start + 512], got[start : start + 512]
        at = arrived != 0
        assert at.sum() <= 16 and (abs(part[at]) >= np.sort(abs(part))[-min(16, len(part))]).all()
        assert (abs(arrived - part)[at] <= abs(part).max() / 7 * (1 + 1e-5)).all()
    np.testing.assert_allclose(got + made.residual, values, atol=1e-6)


def test_over_many_messages_everything_arrives_and_a_sum_is_sent_whole_in_four_bits():
    made, values = compressor("topq:16")(1024), drawn(1024)
    total = sum(sent(made, values).astype(float) for _ in range(400))
    assert abs(total / 400 - values).max() < 0.3
    assert made.of_sum().n_bytes == 2 * 4 + 512


# --- deep gradient compression --------------------------------------------------------------------

N, K, STEPS = 40, 4, 30


def by_hand(gradients, momentum=0.9, mask_velocity=True, mask_residual=True):
    """What is sent in all, by the paper's algorithm with lists and float64, or a wrong one."""
    velocity, remainder, total = np.zeros((3, N))
    for gradient in gradients:
        velocity = momentum * velocity + gradient
        remainder = remainder + velocity
        places = np.argsort(-abs(remainder), kind="stable")[:K]
        total[places] += remainder[places]
        if mask_residual:
            remainder[places] = 0
        if mask_velocity:
            velocity[places] = 0
    return total


def gradients():
    rng = np.random.default_rng(3)
    return (rng.standard_normal(N) + rng.standard_normal((STEPS, N))).astype(np.float32)


def sent_in_all(made):
    total = np.zeros(N)
    for gradient in gradients():
        places, values = made.choose(gradient, 1, 1)
        total[places] += values
    return total


def test_it_sends_what_the_paper_does_and_not_what_a_forgetful_one_does():
    made = DeepGradientCompression(N, argument=K / N, clip=np.inf)
    result = sent_in_all(made)
    np.testing.assert_allclose(result, by_hand(gradients()), rtol=1e-3, atol=1e-4)
    for forgotten in ("mask_velocity", "mask_residual"):
        assert abs(result - by_hand(gradients(), **{forgotten: False})).max() > 1
    assert made.state["residual"] is made.residual and made.state["velocity"] is made.velocity


def test_without_momentum_it_is_topk_with_feedback():
    made = DeepGradientCompression(N, argument=0.1, momentum=0.0, clip=np.inf)
    np.testing.assert_array_equal(sent_in_all(made), sent_in_all(compressor("streams:0.1")(N)))


@pytest.mark.parametrize("n_images, n_ranks", [(1, 1), (32, 1), (32, 4)])
def test_a_gradient_is_clipped_to_its_part_of_the_longest(n_images, n_ranks):
    make = functools.partial(DeepGradientCompression, N, argument=1, momentum=0.0, clip=0.5)
    most = 0.5 * n_images / n_ranks**0.5
    for length, expected in ((0.9 * most, 0.9 * most), (7 * most, most)):
        gradient = np.zeros(N, np.float32)
        gradient[:2] = 0.6 * length, -0.8 * length
        _, values = make().choose(gradient, n_images, n_ranks)
        np.testing.assert_allclose(values[:2], [0.6 * expected, -0.8 * expected], rtol=1e-5)
        assert gradient[0] == np.float32(0.6 * length)  # the caller's stays


def test_the_density_is_warmed_up_in_stages():
    made = compressor("dgc:0.01,2")(2000)
    sizes = [made.choose(np.ones(2000, np.float32), 1, 1)[0].size for _ in range(9)]
    assert sizes == [500, 500, 125, 125, 31, 31, 20, 20, 20]
    at_once = compressor("dgc:0.01")(2000)
    assert at_once.choose(np.ones(2000, np.float32), 1, 1)[0].size == 20
