import pytest

from cnnlab.data import load
from cnnlab.lessons.lesson_53 import decaying, follow, growing, scaled
from cnnlab.training import BATCH, accuracy, train

DIGITS = load("digits", 160, 40)


def steady(batch, rate):
    return lambda epochs: (batch, rate)


def test_paces_say_batch_and_rate():
    assert [decaying(32, 0.8, 4, 2)(e) for e in (0, 1.9, 2, 4)] == [
        (32, 0.8), (32, 0.8), (32, 0.2), (32, 0.05),
    ]  # fmt: skip
    assert [growing(32, 0.8, 4, 2)(e) for e in (0, 1.9, 2, 4)] == [
        (32, 0.8), (32, 0.8), (128, 0.8), (512, 0.8),
    ]  # fmt: skip


def test_a_scaled_rate_climbs_to_the_rate_times_the_batch():
    pace = scaled(8 * BATCH, 0.5, warm_up=2)
    assert [pace(e)[1] for e in (0, 1, 2, 5)] == pytest.approx([0.5, 2.25, 4, 4])
    assert scaled(8 * BATCH, 0.5, warm_up=0)(0) == (8 * BATCH, 4)
    assert scaled(BATCH, 0.5)(0.3) == (BATCH, 0.5)


@pytest.mark.parametrize("optimizer, rate", [("sgd", 0.5), ("momentum", 0.05)])
def test_a_steady_pace_is_what_train_does(optimizer, rate):
    plan = {"seed": 2, "epochs": 8, "optimizer": optimizer}
    looks = follow(steady(4, rate), DIGITS, **plan)
    result = train(DIGITS, batch=4, rate=rate, **plan)
    assert [look.epochs for look in looks] == [k / 4 for k in range(1, 33)]
    assert looks[-1].steps == 320
    results = [row["test_accuracy"] for row in result.history]
    assert [look.accuracy for look in looks[3::4]] == results and results[-1] > 0.5


def test_batches_grow_and_steps_are_counted():
    looks = follow(growing(16, 0.1, 4, 1), DIGITS, epochs=2)
    assert [look.batch for look in looks][3:5] == [16, 64]
    assert looks[3].steps == 10 and looks[-1].steps == 10 + 3


def test_a_training_ends_at_its_target_or_after_its_epochs():
    first = follow(steady(16, 0.4), DIGITS, target=0.0)
    assert len(first) == 1 and first[0].epochs == pytest.approx(0.3, abs=0.1)
    missed = follow(steady(160, 1e-9), DIGITS, target=0.99, epochs=2)
    assert missed[-1].epochs == 2 and missed[-1].accuracy < 0.5


def test_a_look_may_take_some_of_the_test_images():
    some, all_of = (follow(steady(8, 0.4), DIGITS, epochs=6, every=n)[-1].accuracy for n in (8, 1))
    assert some * 5 == pytest.approx(round(some * 5)) and all_of * 40 == round(all_of * 40)
    result = train(DIGITS, batch=8, rate=0.4, epochs=6).params
    expected = accuracy("vector", result, DIGITS.test_images[::8], DIGITS.test_labels[::8])
    assert some == expected


def test_impossible_paces_are_refused():
    with pytest.raises(ValueError, match="batch: expected a whole number of at least 1, got 0"):
        follow(steady(0, 0.1), DIGITS)
    with pytest.raises(ValueError, match="epochs: expected"):
        follow(steady(8, 0.1), DIGITS, epochs=0)
    with pytest.raises(ValueError, match="optimizer: expected one of"):
        follow(steady(8, 0.1), DIGITS, optimizer="newton")
