import pytest

from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.cost_model import KINDS, RoundModel, pair_steps
from cnnlab.ranks.schedules import IDLE, SCHEDULES, Step

SIZES = [1, 100, 10_000]
LINES = {"one way": 1, "both ways": 2, "one way, added": 3, "both ways, added": 5}
MODEL = RoundModel(SIZES, {kind: [k * n * 1e-9 for n in SIZES] for kind, k in LINES.items()})


@pytest.mark.parametrize(
    "step, seconds",
    [
        (IDLE, 0),
        (Step(to=1, b=30), 30e-9),
        (Step(to=1, b=30, source=2, d=20), 60e-9),
        (Step(source=2, d=20, add=True), 60e-9),
        (Step(to=1, b=20, source=2, d=20, add=True), 100e-9),
    ],
)
def test_a_step_costs_what_its_kind_of_round_does(step, seconds):
    assert MODEL.step(step) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "schedule, seconds",
    [
        ("butterfly", 2 * 5 * 400e-9),
        ("ring", (3 * 5 + 3 * 2) * 100e-9),
        ("rabenseifner", (5 + 2) * (200 + 100) * 1e-9),
        ("tree", 2 * (3 + 1) * 400e-9),
    ],
)
def test_an_allreduce_is_the_sum_of_its_rounds(schedule, seconds):
    assert MODEL.allreduce(schedule, 4, 400) == pytest.approx(seconds)


def test_generating_the_steps_takes_time_too():
    led = RoundModel(SIZES, MODEL.seconds, {"ring": 1e-6})
    assert led.allreduce("ring", 4, 400) == pytest.approx(MODEL.allreduce("ring", 4, 400) + 1e-6)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match="schedule"):
        MODEL.allreduce("star", 4, 400)


def test_one_way_is_a_message_and_its_answer():
    first, second = (pair_steps(rank, 1 - rank, 8, False, True) for rank in (0, 1))
    assert first == [Step(to=1, b=8), Step(source=1, d=8, add=True)]
    assert second == [Step(source=0, d=8, add=True), Step(to=0, b=8)]


def on_ranks():
    from mpi4py import MPI

    from cnnlab.ranks import cost_model

    return cost_model.rounds(MPI.COMM_WORLD, [1, 10], 3), cost_model.leading(MPI.COMM_WORLD)


@pytest.mark.mpi
def test_rounds_are_timed_on_an_odd_number_of_ranks():
    with cluster(3) as ranks:
        found, lead = ranks.run(on_ranks, timeout=60)[0]
    assert set(found) == set(KINDS)
    assert set(lead) == set(SCHEDULES) and all(0 < seconds < 1 for seconds in lead.values())
    assert all(len(of) == 2 and len(of[0]) == 3 for of in found.values())
