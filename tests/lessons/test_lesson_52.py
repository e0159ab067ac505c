"""Pictures of cut networks: what they say in words, and what they draw."""

import pytest

from cnnlab.lessons import lesson_52
from cnnlab.network import EIGHT, Conv
from cnnlab.ranks.pipeline import SCHEDULES, plan, timed


def test_half_of_a_layer_is_half_of_its_outputs(monkeypatch):
    shapes = []

    class Noting:
        def kernel(self, name):
            return lambda *arrays: shapes.append((name, *(array.shape for array in arrays)))

    monkeypatch.setattr(lesson_52, "find", lambda name: Noting())
    place = next(place for place in EIGHT.places if isinstance(place.layer, Conv))
    (c, _, w), (f, rows, columns), k = place.input_shape, place.shape, place.layer.kernel
    for half, filters, some in zip(
        lesson_52.HALVES, (f, f // 2, f), (rows, rows, rows // 2), strict=True
    ):
        shapes.clear()
        lesson_52.passes(place, 2, half)()
        x, weights, y = (2, c, some + k - 1, w), (filters, c, k, k), (2, filters, some, columns)
        assert shapes == [
            ("conv_forward", x, weights, (filters,), y),
            ("conv_backward_input", y, weights, x),
            ("conv_backward_weights", x, y, weights),
        ]


PLANS = {name: plan(name, 4, 8) for name in SCHEDULES}


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
