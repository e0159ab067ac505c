import numpy as np
import pytest

from cnnlab.lessons import lesson_22
from cnnlab.lessons.lesson_22 import Tuned, epochs_to, reached_by_all, tuned
from cnnlab.training import Diverged


def rows(*accuracies):
    return [{"epoch": k, "accuracy": a} for k, a in enumerate(accuracies, start=1)]


FOUND = {16: Tuned(0.4, rows(0.5, 0.8, 0.79)), 64: Tuned(1.6, rows(0.3, 0.6, 0.765))}


def test_the_goal_is_what_all_have_reached():
    assert reached_by_all(FOUND) == 0.76
    assert [epochs_to(0.76, one) for one in FOUND.values()] == [2, 3]
    with pytest.raises(ValueError, match=r"^target: expected at most 76\.5%.*got 80\.0%$"):
        epochs_to(0.8, FOUND[64])


def test_each_batch_gets_the_rate_that_ends_highest(monkeypatch):
    def train(data, batch, rate, epochs, progress):
        if rate > 1:
            raise Diverged("too long a step")
        history = [{"epoch": e, "test_accuracy": e * rate / batch} for e in range(1, epochs + 1)]
        return type("Result", (), {"history": history})

    monkeypatch.setattr(lesson_22, "train", train)
    result = tuned(None, [4, 8], [0.5, 1.0, 2.0], epochs=3)
    assert {n: (one.rate, one.last) for n, one in result.items()} == {4: (1, 0.75), 8: (1, 0.375)}
    assert np.isclose(result[4].history[0]["accuracy"], 0.25)
    assert tuned(None, [4], [2.0], epochs=3)[4].last == 0
