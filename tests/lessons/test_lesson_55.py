"""What ranks learn together, and what they send for it."""

import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.averaging import Elastic, Local, disagreement
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.lessons import lesson_55
from cnnlab.network import Network
from cnnlab.training import accuracy, train

DIGITS = load("digits", 200, 100)
HOW = {"epochs": 2, "batch": 20, "rate": 0.4}


def test_data_parallelism_learns_what_one_rank_does():
    result = lesson_55.learn(DataParallel, DIGITS, 4, **HOW)
    one = train(DIGITS, **HOW, progress=False)
    assert result.accuracy == one.history[-1]["test_accuracy"]
    np.testing.assert_allclose(result.models, [one.params.flat] * 4, atol=1e-5)


def test_an_average_that_ends_an_epoch_counts_and_what_is_gathered_for_a_test_does_not():
    n = Network().parameters().flat.nbytes
    local, elastic = (
        lesson_55.learn(functools.partial(make, every=4), DIGITS, 4, **HOW).sent
        for make in (Local, Elastic)
    )
    assert local == pytest.approx(3 / 10 * 2 * n)  # after steps 4 and 8 of 10, and at the end
    assert elastic == pytest.approx(3 / 10 * 2 * n)  # in steps 1, 5 and 9


def test_an_ensemble_sends_nothing_and_its_members_differ():
    result = lesson_55.ensemble(DIGITS, 3, **HOW)
    assert result.sent == 0 and result.models.shape[0] == 3
    members = lesson_55.members(result.models, DIGITS)
    params = Network().parameters()
    params.flat[:] = result.models[1]
    assert members[1] == accuracy("vector", params, DIGITS.test_images, DIGITS.test_labels)
    same = lesson_55.ensemble(DIGITS, 3, starts=0, **HOW).models
    assert disagreement(same) < disagreement(result.models) / 2


def test_a_vote_is_by_the_mean_output():
    models = lesson_55.ensemble(DIGITS, 5, **HOW | {"epochs": 8}).models
    outputs = lesson_55.outputs(models, DIGITS)
    assert outputs.shape == (5, 100, 10)
    expected = (outputs.sum(0).argmax(1) == DIGITS.test_labels).mean()
    assert lesson_55.vote(models, DIGITS) == expected
    assert expected != (outputs.max(0).argmax(1) == DIGITS.test_labels).mean()
    assert lesson_55.vote(models[:1], DIGITS) == lesson_55.members(models[:1], DIGITS)[0]


def test_a_challenge_tells_what_was_sent_and_whether_it_learned(capsys):
    assert lesson_55.challenge_averages(..., DIGITS, 4, 0.5, **HOW) is None
    assert lesson_55.challenge_averages(lambda comm: None, DIGITS, 4, 0.5, **HOW) is None
    assert capsys.readouterr().out.splitlines() == ["challenge: not yet answered"] * 2
    never = lesson_55.challenge_averages(Local, DIGITS, 4, 1.01, **HOW)
    assert never is None and "the goal is 101%" in capsys.readouterr().out
    sent = lesson_55.challenge_averages(Local, DIGITS, 4, 0.0, **HOW)
    assert sent > 0 and f"{sent:,.0f} bytes a step" in capsys.readouterr().out


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
def test_ranks_are_stable_up_to_the_largest_moving_rate_and_not_beyond(rate, n):
    largest = lesson_55.largest_moving_rate(rate, n)
    below, at, beyond = (lesson_55.elastic_matrix(rate, f * largest, 1, n) for f in (0.99, 1, 1.01))
    assert lesson_55.growth(below) < 1 < lesson_55.growth(beyond)
    assert lesson_55.growth(at) == pytest.approx(1)
    ends = [
        abs(lesson_55.elastic_path(rate, f * largest, 1500, n_ranks=n)[-1]).max()
        for f in (0.98, 1.02)
    ]
    assert ends[0] < 1e-3 and ends[1] > 1e3


def test_the_bound_of_one_worker_is_that_of_the_paper():
    assert lesson_55.largest_moving_rate(0.5) == pytest.approx((4 - 2 * 0.5) / (4 - 0.5))


def test_the_method_takes_the_steps_of_the_matrix():
    places = lesson_55.elastic_path(0.3, 0.4, 5, curvature=2.0, n_ranks=2)
    matrix = lesson_55.elastic_matrix(0.3, 0.4, curvature=2.0, n_ranks=2)
    np.testing.assert_allclose(places[5], np.linalg.matrix_power(matrix, 5) @ [1, -0.7])


def test_one_peer_after_the_other_agrees_exactly():
    path = lesson_55.gossip_path("one-peer", 8, 3)
    assert path[2] > 0.1 and path[3] < 1e-12


def test_predictions_begin_in_the_middle_and_what_vanished_is_left_out():
    series = {"slow": 0.5 ** np.arange(9.0), "gone": np.array([4.0, 2.0, 1e-16])}
    ax = lesson_55.shrinking(series, {"slow": 0.5, "gone": 0.0}, x="steps", y="size")
    measured, predicted, gone = ax.lines
    np.testing.assert_allclose(measured.get_ydata(), series["slow"])
    np.testing.assert_allclose(predicted.get_xydata()[[0, -1]], [[4, 0.5**4], [8, 0.5**8]])
    assert list(gone.get_xdata()) == [0, 1]
    assert [text.get_text() for text in ax.texts] == ["slow: × 0.500", "gone: 0 after 2 steps"]
