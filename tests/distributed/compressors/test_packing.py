import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.distributed.compressors import base


@given(st.integers(0, 300), st.sampled_from([1, 2, 4, 8]), st.integers(0, 99))
def test_what_is_packed_is_unpacked(m, bits, seed):
    codes = np.random.default_rng(seed).integers(0, 2**bits, m * 8 // bits).astype(np.uint8)
    packed, back = np.empty(m, np.uint8), np.empty_like(codes)
    base.pack(codes, bits, packed)
    base.unpack(packed, bits, back)
    np.testing.assert_array_equal(back, codes)


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


@pytest.mark.parametrize("n", [1, 511, 512, 513, 1300])
def test_each_bucket_has_the_largest_of_its_own_numbers(n):
    values = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    scales = np.empty(-(-n // 512), np.float32)
    base.maxima(values, 512, scales)
    assert scales.tolist() == [abs(values[b : b + 512]).max() for b in range(0, n, 512)]


@pytest.mark.parametrize("odd", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_bucket_with_a_number_that_is_not_finite_has_no_scale(odd):
    values = np.ones(1024, np.float32)
    values[700] = odd
    scales = np.empty(2, np.float32)
    base.maxima(values, 512, scales)
    assert scales[0] == 1 and np.isnan(scales[1])


def test_no_level_is_above_the_highest():
    values = np.full(512, 0.1, np.float32)  # each at its bucket's scale
    scales, codes = np.full(1, 0.1, np.float32), np.empty(512, np.uint8)
    for seed in range(50):
        base.quantise(values, 512, scales, 3, seed, codes)
        assert (codes == 6).all()
