import numpy as np
import pytest

from cnnlab.kernels.variants import probes


@pytest.mark.parametrize("n", [0, 1, 17, 100])
def test_sums_add_up_all_numbers(n):
    a = np.arange(4 * n, dtype=np.float32)
    assert probes.add_up_1(a) == a.sum()
    assert probes.add_up_2(*a.reshape(2, -1)) == probes.add_up_4(*a.reshape(4, -1)) == a.sum()
    assert probes.read_all(a, 3) == 3 * a.sum()


@pytest.mark.parametrize("stride", [1, 3, 64, 200])
def test_touch_reads_every_stride_th_number(stride):
    a = np.arange(100, dtype=np.float32)
    assert probes.touch(a, stride) == a[::stride].sum()


def test_follow_goes_where_it_is_told():
    places = np.array([2, 0, 3, 1], np.uint64)
    assert [probes.follow(places, n) for n in range(5)] == [0, 2, 3, 1, 0]


def test_roots_are_added_up_below_the_limit_only():
    a = np.array([0.25, 0.5, 0.36, 9], np.float32)
    assert probes.roots_below(a, np.float32(0.5)) == pytest.approx(0.5 + 0.6)


def test_a_write_goes_to_every_page_once():
    a = np.zeros(3 * 4096 + 1, np.uint8)
    probes.write_pages(a)
    assert list(np.flatnonzero(a)) == [0, 4096, 2 * 4096, 3 * 4096]
