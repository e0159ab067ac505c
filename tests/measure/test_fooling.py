"""Exhibits: ten claims whose bars are true, and whose checks say what the claims leave out."""

import pytest
from tests.bench.planner.examples import problem

from cnnlab.lessons import lesson_59
from cnnlab.measure import fooling
from cnnlab.measure.planner.machine import Machine
from cnnlab.ranks.virtual import Link

CURVES = {
    "as one rank": [(10, 0.5), (20, 0.9)],
    "local every 8": [(10, 0.3), (40, 0.8)],
    "one_bit": [(10, 0.2), (20, 0.85)],
}
SAMPLES = {"data": [2e-3, 1e-3, 3e-3], "data one_bit": [4e-3, 4e-3, 4e-3]}
STUDY = fooling.Study(
    problem(), Machine(Link(5e-6, 10e9)), CURVES, SAMPLES, {"loops": 0.02, "vector": 0.003}, 0.75
)
SHOWN = fooling.exhibits(STUDY)


def test_there_is_an_exhibit_for_every_lie_of_the_exercise():
    assert len(SHOWN) == len(lesson_59.lies.model()) == len(lesson_59.ASKS)
    assert len(set(lesson_59.lies.model())) == 10


def test_what_a_claim_leaves_out_is_in_its_check():
    base, accuracy, scaling, picked, bits, real, run, axis, part, line = SHOWN
    assert base.bars["1 rank"] / base.bars["2 ranks"] == pytest.approx(10)
    assert "10.0 times" in base.claim and "1.5 times" in base.truth
    assert "75% right comes" in accuracy.truth
    strong = STUDY.speedup(64, 32) / 64
    assert f"{100 * strong:.1f} %" in scaling.truth and scaling.bars["64 ranks"] > 300 * strong
    assert "at 16" in picked.truth and max(picked.bars.values()) > STUDY.speedup(4, 16)
    assert "2.00 times as long" in bits.truth and bits.bars["data"] > bits.bars["data one_bit"]
    assert (
        next(iter(real.bars.values())) > 10 * list(real.bars.values())[-1] and "cores" in real.truth
    )
    assert run.bars["data"] == pytest.approx(1) and "median is 2" in run.truth
    fast, slow = sorted(axis.bars.values())
    assert 0.9 * fast < axis.low < fast and axis.truth == f"They differ by {slow / fast - 1:.1%}."
    assert part.bars["data"] == 8 * part.bars["sharded"]
    assert list(line.bars.values())[-1] > 500 > STUDY.speedup(64, 256)
    assert line.bars["1 rank"] == 1 and "drawn on" in line.unit


def test_a_target_that_is_never_reached_is_said_so():
    never = fooling.replace(STUDY, target=0.89)
    assert "is never reached so" in fooling.without_accuracy(never).truth


def test_checks_are_told_by_number(capsys):
    fooling.tell(SHOWN[:3], ["cut axis", ..., "weak base"])
    told = capsys.readouterr().out.splitlines()
    assert told == [f" 1  {SHOWN[0].truth}", " 2  first name its lie", f" 3  {SHOWN[2].truth}"]


def test_two_that_are_equally_good_have_an_axis_all_the_same():
    same = fooling.cut_axis(fooling.replace(STUDY, problem=problem(n_ranks=1)))
    first, second = same.bars.values()
    assert first == second > same.low > 0
