import numpy as np
import pytest

from cnnlab.measure import search_ranks
from cnnlab.measure.search_race import SPACE, trainer
from cnnlab.measure.search_ranks import (
    busy,
    clocked,
    on_virtual_ranks,
    seconds_of,
    without_messages,
)
from cnnlab.training.search import Done, PopulationBased, RandomSearch, Trial

TASK = trainer(96, 50)


def test_a_trial_takes_as_long_as_its_steps_and_its_images():
    trial = Trial(0, {"batch": 16}, 2, None, 0)
    assert seconds_of(trial, 100) == pytest.approx(2 * 7 * 16e-6 + 200 * 2.2e-6)


def population():
    return PopulationBased(SPACE.draw, SPACE.perturb, 1, 32, size=4)


def test_generations_wait_for_the_slow_and_free_ranks_do_not():
    shares, sizes = {}, {}
    for generation in (0, 4):
        done, world = on_virtual_ranks(population, TASK, 4, generation=generation, speed={2: 3})
        shares[generation], sizes[generation] = busy(world.record, range(1, 5)), len(done)
        assert busy(world.record, [0]) == 0 and world.record.messages
    assert sizes == {0: 32, 4: 32}
    assert shares[4].mean() < 0.75 < shares[0].mean()
    assert shares[0].min() > 0.5


def test_without_messages_the_rest_stays():
    _, world = on_virtual_ranks(population, TASK, 2)
    record = without_messages(world.record)
    assert record.messages == [] and record.events == world.record.events and record.virtual


def test_every_trial_is_charged(monkeypatch):
    monkeypatch.setattr(search_ranks, "seconds_of", lambda trial, n_images: 0.5)
    done, world = on_virtual_ranks(lambda: RandomSearch(SPACE.draw, 1, 6), TASK, 2)
    assert sum(world.record.seconds("compute")) == pytest.approx(0.5 * len(done))


def test_real_ranks_are_drawn_from_what_their_trials_report():
    trial = Trial(0, {}, 1, None, 0)
    done = [Done(trial, 0.5, {"begin": 10.0, "end": 12.0, "rank": 1})]
    done += [Done(trial, 0.5, {"begin": 11.0, "end": 14.0, "rank": 0})]
    record = clocked(done, 2)
    assert record.span() == (0, 4) and not record.virtual
    assert np.allclose(busy(record, range(2)), [0.75, 0.5])
