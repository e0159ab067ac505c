"""Plans: steps that are played and counted, beside steps that are run; and the command."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pytest

from cnnlab.__main__ import main
from cnnlab.measure import planner
from cnnlab.measure.planner import HeldBytes, Measured, plan, plans

LESSON = Path(__file__).parents[2] / "notebooks" / "59_which_one_here.ipynb"
LINK = "10us,1GB/s"
N = 44426 * 4  # bytes of LeNet-5's parameters


def test_messages_and_bytes_are_those_of_a_textbook():
    data = plan("data", "lenet5", 2, 16)
    assert data == plan("data", "lenet5", 2, 16)  # each time the same
    assert (data.n_messages, data.n_bytes, data.busiest) == (4, 2 * N, N)  # halves, to and fro
    local = plan("local", "lenet5", 2, 16)
    assert local.n_bytes == data.n_bytes / 8  # every eighth step, whichever that is
    assert plan("sharded", "lenet5", 4, 16).n_bytes == 3 * 3 * N
    assert plan("gossip", "lenet5", 4, 16).n_bytes == 4 * 2 * N
    halves = plan("data --compress fp16", "lenet5", 4, 16)
    assert halves.n_bytes == pytest.approx(2 * 3 * N / 2, rel=1e-3)
    server = plan("server", "lenet5", 4, 15)
    assert server.n_messages == 2 * 3 and server.n_bytes == pytest.approx(6 * N, rel=1e-3)


def test_images_a_second_are_in_the_order_of_the_steps():
    variants = ("alone", "data", "pipeline")
    planned, refused = plans(variants, network="lenet5", n_ranks=4, batch=32)
    rates = [32 / plan(one.variant, "lenet5", 4, 32).seconds for one in planned]
    assert len(rates) == 3 and rates == sorted(rates, reverse=True) and not refused


def test_arrays_count_while_they_are_there():
    held, base = HeldBytes(), np.zeros(100, np.float32)
    held.see((base[:50], base[50:], 3))
    other = np.ones(10)
    held.see((other,))
    assert held.now == held.most == 400 + 80
    del other
    held.see((np.ones(1),))
    assert (held.now, held.most) == (400, 480)


def test_what_ranks_hold_is_what_methods_are_for():
    variants = ["alone", "data", "data --compress one_bit", "sharded", "elastic"]
    variants += ["pipeline", "pipeline --schedule gpipe"]
    held = {variant: plan(variant, "lenet5", 4, 32).held for variant in variants}
    assert held["alone"] > 2 * N + 32 * 4 * 10_000  # activations, too
    assert held["sharded"] < held["data"] < held["elastic"] < held["alone"]
    assert held["pipeline"] < held["pipeline --schedule gpipe"]  # fewer micro-batches
    assert held["data --compress one_bit"] > held["data"] + N  # residuals


def test_more_ranks_than_are_played_are_extrapolated(monkeypatch):
    seen = {variant: plan(variant, "lenet5", 16, 64) for variant in ("data", "gossip")}
    monkeypatch.setattr(planner, "PLAYED", 8)
    monkeypatch.setattr(planner, "PLAYS", (2, 4, 8))
    for variant, right in seen.items():
        few = plan(variant, "lenet5", 16, 64)
        assert few.extrapolated and not right.extrapolated
        for name in ("seconds", "n_bytes", "n_messages", "busiest", "held"):
            assert getattr(few, name) == pytest.approx(getattr(right, name), rel=0.1), name
    grid = plan("hybrid --grid 12x1x1", "report", 12, 24)  # no fewer ranks would do
    assert not grid.extrapolated and grid.n_messages > 0


def test_costs_are_medians_by_shape_without_the_first_call():
    cost, (a, b) = Measured(), (np.zeros((2, 3)), np.zeros((4, 3)))
    assert [cost("relu", (a, a), took) for took in (9.0, 1.0, 2.0, 6.0)] == [9.0, 1.0, 2.0, 6.0]
    cost("relu", (b, b), 5.0)
    cost.settle()
    assert cost("relu", (a, a), 7.0) == 2.0 and cost("relu", (b, b), 7.0) == 5.0


def test_the_step_of_the_lesson_is_that_of_the_package():
    cells = nbformat.read(LESSON, 4).cells
    matter = [cell.source for cell in cells if "matter" in cell.metadata.get("tags", [])]
    matter = [source for source in matter if "seen[" not in source]  # needs real ranks
    imports = next(cell.source for cell in cells if cell.source.startswith("import time"))
    exec("\n".join((imports, *matter)), lesson := {})
    for variant in ("sharded", "pipeline", "model --cut pixels"):
        by_cells = lesson["step"](variant, 4, LINK, planner.modelled, learn=False)
        _, held = lesson["play"](variant, 4, 1, LINK, planner.modelled)
        planned = plan(variant, "lenet5", 4, lesson["BATCH"], LINK)
        assert by_cells.sent.sum() == planned.n_bytes
        assert by_cells.seconds == pytest.approx(planned.seconds, abs=4e-5)  # updates
        assert 0.5 * planned.held < max(held) <= planned.held  # and what a method keeps


def test_the_command_prints_json(capsys):
    words = ["--methods", "data, pipeline", "--link", "1us,50GB/s", "--json"]  # measured kernels
    assert main(["plan", "--ranks", "8", "--batch", "16", *words]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (printed["n_ranks"], printed["batch"], printed["network"]) == (8, 16, "report")
    (row,) = printed["plans"]
    assert row["variant"] == "data" and row["images_per_second"] == 16 / row["seconds"] > 0
    assert "at most 6 stages" in printed["refused"]["pipeline"]


@pytest.mark.parametrize(
    "words, line",
    [
        (["--ranks", "0"], "-n/--ranks: expected a whole number of at least 1, got 0"),
        (["--link", "fast"], "link: expected a text such as 10us,1GB/s, got 'fast'"),
        (["--methods", "data, dta"], "dta: argument --ranks: invalid choice: 'dta'"),
        (["--methods", "data --grid 2x2"], "--grid: expected three numbers such as 2x2x2"),
        (["--methods", "data --cut pixels"], "--cut: expected --ranks model"),
    ],
)
def test_bad_input_is_one_line(words, line, capsys):
    try:
        status = main(["plan", *words])
    except SystemExit as stopped:
        status = stopped.code
    out, err = capsys.readouterr()
    assert status == 2 and line in err and err.count("\n") == 1 and not out
