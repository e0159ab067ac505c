from types import SimpleNamespace

import pytest

from cnnlab.data import load
from cnnlab.measure import timing, worlds
from cnnlab.measure.worlds import Compute, compute_model, step_seconds, training_seconds
from cnnlab.ranks.virtual import Link, World
from cnnlab.training.pace import Look
from tests.ranks.programs import run


def test_programs_take_the_time_of_their_messages_in_the_virtual_world():
    link = Link(latency=1e-3, bandwidth=1e6, call=0.0)
    result = World(2, link).run(worlds.timed, load("digits", 64), 0.5, 1)[0]
    assert result[worlds.SHORT] == pytest.approx(2 * (1e-3 + 4e-6))
    assert result["ping-pong, 10,000 numbers"] == pytest.approx(2 * (1e-3 + 0.04))
    assert result["allreduce, 1,000 numbers"] == pytest.approx(1e-3 + 4e-3)
    assert result[worlds.COMPUTING] == pytest.approx(0.5)
    assert result["data-parallel step"] == pytest.approx(0.5 + result["allreduce, 2,428 numbers"])


PROGRAM = """
from mpi4py import MPI
from cnnlab.measure import worlds
from cnnlab.data import load
found = worlds.compare(MPI.COMM_WORLD, load("digits", 64), 2e-3, 1e6, 5)
assert bool(found) == (MPI.COMM_WORLD.rank == 0)
if found:
    print(worlds.table(found))
"""


@pytest.mark.mpi
def test_both_worlds_are_compared_on_two_ranks(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    out, _ = run(2, "-m", "mpi4py", str(tmp_path / "program.py"))
    lines = out.splitlines()
    assert len(lines) == 8 and all("µs slowed" in line and "µs virtual" in line for line in lines)
    slowed = {line[:28].strip(): float(line[28:].split()[0]) for line in lines}
    assert slowed["ping-pong, 10,000 numbers"] >= 2 * (2e3 + 4e4)  # not before its time
    assert all(slowed[name] > 2e3 for name in slowed if name != "computing of a step")


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
