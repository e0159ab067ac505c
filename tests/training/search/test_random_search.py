from cnnlab.training.search import Here, RandomSearch, run
from tests.training.search.examples import SPACE, hill


def test_scores_have_no_influence():
    told = run(RandomSearch(SPACE.draw, 9, 90), Here(hill))
    untold = RandomSearch(SPACE.draw, 9, 90)
    assert [one.trial for one in told] == [untold.ask() for _ in range(10)]


def test_another_seed_draws_others():
    a, b = (RandomSearch(SPACE.draw, 9, 90, seed).ask() for seed in (0, 1))
    assert a.config != b.config and a.seed != b.seed
