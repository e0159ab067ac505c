import numpy as np
import pytest

from cnnlab.training.search import Range, Space

SPACE = Space(rate=Range(0.01, 1), batch=Range(8, 64, whole=True), share=Range(0, 1, log=False))


def test_the_middle_of_a_logarithmic_range_is_its_geometric_mean():
    assert SPACE["rate"].at(0.5) == pytest.approx(0.1)
    assert SPACE["share"].at(0.25) == 0.25
    assert (SPACE["rate"].at(0), SPACE["rate"].at(1)) == (0.01, 1)


def test_whole_numbers_are_whole_and_lie_within():
    drawn = [SPACE.draw(np.random.default_rng(seed))["batch"] for seed in range(200)]
    assert {type(n) for n in drawn} == {int} and min(drawn) >= 8 and max(drawn) <= 64


def test_half_of_the_draws_lie_below_the_geometric_mean():
    rng = np.random.default_rng(0)
    rates = np.array([SPACE.draw(rng)["rate"] for _ in range(2000)])
    assert abs((rates < 0.1).mean() - 0.5) < 0.04


def test_perturbing_multiplies_by_one_of_two_factors_within_the_range():
    rng, found = np.random.default_rng(0), set()
    for _ in range(50):
        changed = SPACE.perturb({"rate": 0.1, "batch": 60, "share": 1.0}, rng)
        found.add((round(changed["rate"], 6), changed["batch"], changed["share"]))
    assert {a for a, _, _ in found} == {0.08, 0.12}
    assert {b for _, b, _ in found} == {48, 64} and {c for _, _, c in found} == {0.8, 1.0}


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, 1)])
def test_an_impossible_range_is_refused(ends):
    with pytest.raises(ValueError, match="range: expected 0 < low < high"):
        Range(*ends)
