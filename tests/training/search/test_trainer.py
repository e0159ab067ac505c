import numpy as np
import pytest

from cnnlab.measure.search_race import trainer
from cnnlab.training.search import Trial

CONFIG = {"rate": 0.1, "friction": 0.1, "batch": 16}


@pytest.fixture(scope="module")
def train():
    return trainer(96, 50)


def test_a_trial_is_what_its_seed_and_its_parents_state_make_of_it(train):
    trial = Trial(3, CONFIG, 2, None, 7)
    a, b = train(trial, None), train(trial._replace(number=9), None)
    assert a.score == b.score and np.array_equal(a.state["params"], b.state["params"])
    assert not np.array_equal(
        a.state["params"], train(trial._replace(seed=8), None).state["params"]
    )
    on = [train(Trial(4, CONFIG, 1, 3, 1), state) for state in (a.state, b.state)]
    assert np.array_equal(on[0].state["params"], on[1].state["params"])


def test_the_velocity_goes_along_and_the_state_stays_as_it_was(train):
    state = train(Trial(0, CONFIG, 1, None, 0), None).state
    before = {name: array.copy() for name, array in state.items()}
    with_it = train(Trial(1, CONFIG, 1, 0, 5), state).state["params"]
    still = state | {"velocity": np.zeros_like(state["velocity"])}
    assert not np.array_equal(with_it, train(Trial(1, CONFIG, 1, 0, 5), still).state["params"])
    assert all(np.array_equal(state[name], before[name]) for name in before)


def test_the_score_is_of_held_out_images_and_the_test_is_only_reported(train):
    result = train(Trial(0, CONFIG, 1, None, 0), None)
    assert (result.score * 50) == pytest.approx(round(result.score * 50))
    assert (result.report["test"] * 360) == pytest.approx(round(result.report["test"] * 360))
    assert 0 < result.report["end"] - result.report["begin"] < 60
    held = {image.tobytes() for image in train.data.test_images}
    assert not held & {image.tobytes() for image in train.data.train_images}
    assert not held & {image.tobytes() for image in train.images}


def test_a_training_that_diverges_has_a_low_score_and_no_error(train):
    result = train(Trial(0, CONFIG | {"rate": 1e30}, 2, None, 0), None)
    assert result.score < 0.3


def test_genes_make_the_network(train):
    config = CONFIG | {"genes": [["MaxPool", 4], ["Dense", 16, "ReLU"]]}
    result = train(Trial(0, config, 1, None, 0), None)
    assert result.state["params"].size == 49 * 16 + 16 + 16 * 10 + 10
