from types import SimpleNamespace

import pytest

from cnnlab.lessons.lesson_53 import (
    Compute,
    Look,
    compute_model,
    step_seconds,
    training_seconds,
)
from cnnlab.measure import timing
from cnnlab.ranks.virtual import Link

LINK = Link(latency=10e-6, bandwidth=1e9, call=0.0)
COST = Compute(step=20e-6, image=2e-6)


def test_one_rank_only_computes():
    assert step_seconds(1, 64, COST, LINK, 1000) == pytest.approx(20e-6 + 64 * 2e-6)


def test_ranks_share_the_images_and_pay_for_the_sum():
    rounds, message = 3, 10e-6 + 4000 / 1e9
    expected = COST.seconds(8) + rounds * message
    assert step_seconds(8, 64, COST, LINK, 1000) == pytest.approx(expected, rel=1e-3)
    assert step_seconds(8, 65, COST, LINK, 1000) == pytest.approx(expected + COST.image, rel=1e-3)


def test_a_training_takes_its_steps_at_the_batch_of_each():
    looks = [Look(0.5, 10, 16, 1.0, 0.1), Look(1.0, 14, 64, 1.0, 0.2)]
    small, large = (step_seconds(2, batch, COST, LINK, 100) for batch in (16, 64))
    result = training_seconds(looks, 2, COST, LINK, 100)
    assert result == pytest.approx(10 * small + 4 * large)


def test_the_model_fits_what_it_was_measured_on(monkeypatch):
    def compare(calls, repeats):
        for call in calls.values():
            call()
        return {n: SimpleNamespace(median=COST.seconds(int(n))) for n in calls}

    monkeypatch.setattr(timing, "compare", compare)
    model, medians = compute_model(sizes=(16, 64, 256), repeats=5)
    assert medians == {n: COST.seconds(n) for n in (16, 64, 256)}
    assert model == pytest.approx(COST)
