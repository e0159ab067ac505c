import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.distributed.trial import Counting
from cnnlab.ranks import sparse
from cnnlab.ranks.virtual import World

PLACES = st.sets(st.integers(0, 30)).map(lambda group: np.array(sorted(group), np.int32))


@given(PLACES, PLACES)
def test_streams_are_added_by_place(ours, theirs):
    one, other = (ours, np.float32(ours + 1)), (theirs, np.float32(2 * theirs + 1))
    places, values = sparse.added(one, other)
    assert places.tolist() == sorted({*ours.tolist(), *theirs.tolist()})
    expected = np.zeros(31)
    expected[ours] += ours + 1
    expected[theirs] += 2 * theirs + 1
    np.testing.assert_array_equal(values, expected[places])


@pytest.mark.parametrize("k, n_bytes", [(0, 4), (5, 44), (6, 48), (11, 48)])
def test_a_message_is_a_stream_up_to_half_of_the_places_and_the_array_above(k, n_bytes):
    places = np.arange(k, dtype=np.int32)
    sent = sparse.message((places, np.float32(places)), 11)
    assert sent.size == n_bytes
    back = np.empty(48, np.uint8)
    back[: sent.size] = sent
    for got in sparse.stream_of(back, 11):
        assert got[:k].tolist() == list(range(k)) and (got[k:] == 0).all() | (len(got) == 11)


def stream(rank, n, k):
    rng = np.random.default_rng(rank)
    return np.sort(rng.permutation(n)[:k]).astype(np.int32), rng.standard_normal(k, np.float32)


def program(comm, n, k):
    """The sum of streams with k places each, and what it should be."""
    (places, values), total = stream(comm.rank, n, k), np.empty(n, np.float32)
    mine = np.zeros(n, np.float32)
    mine[places] = values
    sparse.allreduce(comm, places, values, total)
    expected = np.empty(n, np.float32)
    comm.Allreduce(mine, expected)
    return total, expected


@pytest.mark.parametrize("k", [0, 3, 100])
@pytest.mark.parametrize("size", [1, 3, 7, 8])
def test_any_number_of_ranks_has_the_sum_with_the_same_bits(size, k):
    result = World(size).run(program, 200, k)
    for total, expected in result:
        np.testing.assert_allclose(total, expected, atol=1e-5)
        np.testing.assert_array_equal(total, result[0][0])


def test_streams_send_what_they_hold_and_never_more_than_the_array():
    def program(comm, k):
        sparse.allreduce(comm, *stream(comm.rank, 1000, k), np.empty(1000, np.float32))

    two, many = Counting(2), Counting(8)
    two.run(program, 10)
    many.run(program, 400)
    assert set(two.sent.sum(1)) == {4 + 80}
    assert set(many.sent.sum(1)) == {(4 + 3200) + 2 * 4004}
