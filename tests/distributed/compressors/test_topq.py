import numpy as np
import pytest

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.topk import select_in_buckets


def drawn(n):
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("n", [0, 3, 512, 516, 1300])
def test_each_bucket_gives_its_own_largest(n):
    values, k = drawn(n), 5
    starts = range(0, n, 512)
    kept = [min(k, n - start, 512) for start in starts]
    places, chosen = np.empty(sum(kept), np.int32), np.empty(sum(kept), np.float32)
    select_in_buckets(values, 512, k, places, chosen)
    expected = [np.sort(np.argsort(-abs(values[s : s + 512]))[:k]) for s in starts]
    assert places.tolist() == [int(i) for part in expected for i in part]
    at = np.repeat(list(starts), kept).astype(int) + places
    np.testing.assert_array_equal(chosen, values[at])


@pytest.mark.parametrize("n, n_bytes", [(512, 4 + 16 * 2.5), (1024, 88), (514, 4 + 40 + 4 + 5)])
def test_a_number_takes_two_and_a_half_bytes(n, n_bytes):
    made = compressor("topq:16")(n)
    assert made.encode(drawn(n)).size == made.n_bytes == n_bytes


def test_what_arrives_is_near_and_the_rest_is_owed():
    made, values, got = compressor("topq:16")(1300), drawn(1300), np.empty(1300, np.float32)
    message = made.encode(values)
    compressor("topq:16")(1300, seed=9).decode(message, got)  # a reader that has sent nothing
    assert (got != 0).sum() <= 48
    for start in range(0, 1300, 512):
        part, arrived = values[start : start + 512], got[start : start + 512]
        at = arrived != 0
        assert abs(part[at]).min() >= np.sort(abs(part))[-17]
        assert (abs(arrived - part)[at] <= abs(part).max() / 7 * (1 + 1e-5)).all()
    np.testing.assert_allclose(got + made.residual, values, atol=1e-6)


def test_over_many_messages_everything_arrives():
    made, values, got = compressor("topq:16")(1024), drawn(1024), np.empty(1024, np.float32)
    total = np.zeros(1024)
    for _ in range(400):
        made.decode(made.encode(values), got)
        total += got
    assert abs(total / 400 - values).max() < 0.3


def test_a_sum_is_sent_whole_in_four_bits():
    assert compressor("topq:16")(1024).of_sum().n_bytes == 2 * 4 + 512


@pytest.mark.parametrize("text", ["topq:0", "topq:513", "topq:x", "topq:1.5"])
def test_another_number_of_a_bucket_is_refused(text):
    with pytest.raises(ValueError, match=r"^compress: expected 1 to 512"):
        compressor(text)
