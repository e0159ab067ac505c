import pytest

from cnnlab.data import load
from cnnlab.measure import bench, timing
from cnnlab.training import method


def contestants(*names, n_images=50, against=None):
    return bench.contestants(names, load("digits", n_images, 10), 20, 1, against)


def test_contestants_have_the_names_of_their_strategies():
    result = contestants("vector", "loops")
    assert {name: one.strategy.name for name, one in result.items()} == {
        "vector": "vector",
        "loops": "loops",
    }
    with pytest.raises(ValueError, match="against: expected one of torch, got 'jax'"):
        contestants("loops", against="jax")


def test_a_step_is_one_step_however_many_a_call_takes(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 45)
    result = contestants("loops", "vector")
    taken = {name: one.steps for name, one in result.items()}
    calls = {}

    def compare(given, **how):
        calls.update(given)
        return {name: timing.Timing(name, (6.0,)) for name in given}

    monkeypatch.setattr(timing, "compare", compare)
    timed = bench.step_times(result, others={"other": print})
    assert calls == taken | {"other": print}
    assert {name: t.samples for name, t in timed.items()} == {
        "loops": (6.0,),
        "vector": (3.0,),  # two in a call
        "other": (6.0,),
    }
    epoch = {name: t.median for name, t in bench.epochs(result, 20, 1).items()}
    assert epoch == {"loops": 6 * 3000, "vector": 3 * 3000}


def test_a_wrong_contestant_is_not_timed(monkeypatch):
    result = contestants("vector", "loops")
    timed = []
    monkeypatch.setattr(result["vector"], "steps", lambda: timed.append("vector"))
    monkeypatch.setattr(
        result["loops"].strategy.module, "conv_backward_bias", lambda dz, db: db.fill(0)
    )
    with pytest.raises(AssertionError, match="gradients of loops"):
        bench.epochs(result, 20, 1)
    assert not timed
