"""Pictures of cut networks: what they say in words, and what they draw."""

import matplotlib.pyplot as plt
import pytest

from cnnlab.distributed.model import shares
from cnnlab.lessons import lesson_52
from cnnlab.network import LENET5
from cnnlab.ranks.pipeline import SCHEDULES, plan, timed

PLANS = {name: plan(name, 4, 8) for name in SCHEDULES}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def times():
    return {name: timed(group, lesson_52.pipelines_units(group)) for name, group in PLANS.items()}


def test_schedules_have_a_panel_each_that_says_how_long_they_take():
    axes = lesson_52.plans(times(), title="Four schedules")
    ends = {"gpipe": "33", "1f1b": "33", "interleaved": "28.5", "zero-bubble": "27"}
    titles = {name: ax.get_title(loc="left") for name, ax in zip(ends, axes, strict=True)}
    assert all(titles[name].startswith(f"{name}: {end} units") for name, end in ends.items())
    assert [name for name, said in titles.items() if "light: its second" in said] == ["interleaved"]
    assert [len(ax.patches) for ax in axes] == [64, 64, 128, 96]
    keys = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert keys == ["forward", "backward", "weights"]


def test_memory_has_a_line_for_each_rank_up_to_what_it_holds():
    axes = lesson_52.memory(times())
    most = [[max(line.get_ydata()) for line in ax.lines] for ax in axes]
    assert most == [[8] * 4, [4, 3, 2, 1], [5.5, 4.5, 3.5, 2.5], [4] * 4]


def test_halos_frame_what_is_needed_around_what_is_owned():
    ax = lesson_52.halos(shares(LENET5, 2, "pixels")[3:4])
    boxes = [(patch.get_y(), patch.get_height()) for patch in ax.patches]
    assert boxes == [(0, 6), (0, 8), (6, 6), (4, 8)]


def test_a_grid_has_a_box_for_each_rank_and_arrows_between_stages():
    ax = lesson_52.grid(2, 3, 2)
    labels = [text.get_text() for text in ax.texts if text.get_text()]
    assert labels == [f"rank {rank}" for rank in range(12)]
    assert len(ax.texts) - len(labels) == 2 * 2


def test_bars_and_lines_carry_their_names():
    ax = lesson_52.bars({"one": 1e6, "two": 2.0}, "bytes")
    assert [text.get_text() for text in ax.texts] == ["1,000,000", "2"]
    ax = lesson_52.by_ranks([1, 2], {"data": [2, 1], "least": [2, 0.5]}, "seconds")
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]
    assert {text.get_text() for text in ax.texts} == {"data", "least"}


def test_a_plan_is_proved_told_and_drawn_beside_the_rungs(capsys):
    rungs = {"1f1b": PLANS["1f1b"]}
    mine = [[tuple(task) for task in tasks] for tasks in PLANS["zero-bubble"]]
    axes = lesson_52.challenge_schedule(mine, rungs, 8)
    assert axes[0].figure.get_suptitle() == "Your plan takes 27 units"
    assert capsys.readouterr().out == (
        "1f1b: 33 units, at most [4, 3, 2, 1] micro-batches held by rank\n"
        "yours: 27 units, at most [4, 4, 4, 4] micro-batches held by rank\n"
    )


@pytest.mark.parametrize(
    "mine, text", [(..., "not yet there"), ([[("F", 0, 0)]] * 4, "rank 0 does F of micro-batch 1")]
)
def test_a_plan_that_is_none_is_not_drawn(mine, text, capsys):
    assert lesson_52.challenge_schedule(mine, {"1f1b": PLANS["1f1b"]}, 8) is None
    assert text in capsys.readouterr().out
