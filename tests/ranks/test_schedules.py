import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.ranks.schedules import NOBODY, SCHEDULES

SIZES = st.integers(1, 40)


def play(name, values):
    """Carry out a schedule on all ranks at once, round by round; return values and rounds."""
    size, n = values.shape
    values = values.copy()
    rounds = list(zip(*(SCHEDULES[name](r, size, n) for r in range(size)), strict=True))
    for steps in rounds:
        before = values.copy()
        for rank, step in enumerate(steps):
            if step.source != NOBODY:
                sent = steps[step.source]
                assert sent.to == rank and (sent.a, sent.b) == (step.c, step.d)
                came = before[step.source, step.c : step.d]
                values[rank, step.c : step.d] = (
                    before[rank, step.c : step.d] + came if step.add else came
                )
            if step.to != NOBODY:
                assert steps[step.to].source == rank
    return values, len(rounds)


@pytest.mark.parametrize("name", SCHEDULES)
@given(size=SIZES, n=st.integers(0, 50), seed=st.integers(0, 99))
def test_every_rank_ends_with_the_sum_and_the_same_bits(name, size, n, seed):
    values = np.random.default_rng(seed).uniform(-1, 1, (size, n))
    result, _ = play(name, values)
    np.testing.assert_allclose(result[0], values.sum(0), atol=1e-12)
    assert (result == result[0]).all()


def rounds(name, size):
    return len(list(SCHEDULES[name](0, size, 100)))


def test_numbers_of_rounds():
    assert [rounds("tree", p) for p in (1, 2, 8, 9)] == [0, 2, 6, 8]
    assert [rounds("butterfly", p) for p in (1, 2, 8, 9)] == [0, 1, 3, 5]
    assert [rounds("ring", p) for p in (1, 2, 8, 9)] == [0, 2, 14, 16]
    assert [rounds("rabenseifner", p) for p in (1, 2, 8, 9)] == [0, 2, 6, 8]
