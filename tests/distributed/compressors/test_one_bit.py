import numpy as np

from cnnlab.distributed.compressors import compressor


def test_a_bucket_keeps_its_sum_and_its_signs():
    values = np.random.default_rng(0).standard_normal(1300).astype(np.float32)
    made, got = compressor("one_bit")(1300), np.empty(1300, np.float32)
    made.decode(made.encode(values), got)
    np.testing.assert_array_equal(got < 0, values < 0)
    for b in range(0, 1300, 512):
        assert len(set(got[b : b + 512].tolist())) == 2
        np.testing.assert_allclose(got[b : b + 512].sum(), values[b : b + 512].sum(), rtol=1e-3)


def test_what_is_not_sent_is_sent_later():
    rng, made = np.random.default_rng(1), compressor("one_bit")(600)
    given, arrived, got = np.zeros(600), np.zeros(600), np.empty(600, np.float32)
    for _ in range(50):
        values = rng.standard_normal(600).astype(np.float32)
        made.decode(made.encode(values), got)
        given, arrived = given + values, arrived + got
        np.testing.assert_allclose(arrived + made.residual, given, atol=1e-4)
    assert made.state["residual"] is made.residual
    assert abs(made.residual).max() < 20  # it does not pile up


def test_values_of_one_sign_and_zeros_and_nan():
    made, got = compressor("one_bit")(1536), np.empty(1536, np.float32)
    values = np.zeros(1536, np.float32)
    values[:512], values[1030] = 2, np.nan
    made.decode(made.encode(values), got)
    assert (got[:512] == 2).all() and (got[512:1024] == 0).all() and np.isnan(got[1024:]).all()


def test_a_message_is_as_long_as_it_says():
    made = compressor("one_bit")(2428)
    assert made.encode(np.ones(2428, np.float32)).size == made.n_bytes == 5 * 8 + 304
