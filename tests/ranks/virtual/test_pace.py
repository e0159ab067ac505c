import numpy as np
import pytest

from cnnlab.ranks.virtual import World, stragglers
from cnnlab.ranks.virtual.pace import Pace


def computing(comm):
    for _ in range(200):
        comm.compute(1.0)
    return comm.clock()


def test_some_ranks_may_have_a_speed():
    assert World(3, speed={1: 2.5}).run(computing) == [200, 500, 200]


def test_jitter_is_drawn_from_the_seed_for_each_rank_and_keeps_the_median():
    first, again, other = (World(3, jitter=0.3, seed=s).run(computing) for s in (1, 1, 2))
    assert first == again != other and len(set(first)) == 3
    pace = Pace(2, jitter=0.5)
    alone = [Pace(2, jitter=0.5).factor(0) for _ in range(2)]
    drawn = [pace.factor(0) for _ in range(1001)]
    assert alone == drawn[:1] * 2 and 0.9 < np.median(drawn) < 1.1 and max(drawn) > 2


def test_stragglers_are_drawn_from_a_seed():
    speed = stragglers(64, 3, 4.0, seed=5)
    assert sorted(speed)[-4:] == [1, 4, 4, 4] and speed == stragglers(64, 3, 4.0, seed=5)
    assert speed != stragglers(64, 3, 4.0, seed=6)


@pytest.mark.parametrize(
    "wrong", [{"speed": [1.0]}, {"speed": {5: 1.0}}, {"speed": [1, 0]}, {"jitter": -1}]
)
def test_what_is_no_pace_is_refused(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: expected"):
        Pace(2, **wrong)
