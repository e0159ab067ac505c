import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.ranks.cost_model import Model, fit


@given(st.floats(1e-7, 1e-3), st.floats(1e-12, 1e-8))
def test_a_fit_finds_what_made_the_times(latency, gap):
    sizes = [1, 10, 100, 10_000, 1_000_000]
    result = fit(sizes, [latency + 4 * n * gap for n in sizes])
    assert result.latency == pytest.approx(latency, rel=1e-3)
    assert result.gap == pytest.approx(gap, rel=1e-3)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="sizes: expected at least two different ones"):
        fit([1], [1.0])
    with pytest.raises(ValueError, match="seconds: expected positive numbers"):
        fit([1, 2], [1.0, -1.0])
    with pytest.raises(ValueError, match="latency: expected a finite number of at least 0, got -1"):
        Model(-1, 0)
