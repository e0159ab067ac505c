"""Schedules of pipelines: every task once, in orders and times as the papers say."""

import pytest

from cnnlab.ranks.pipeline import SCHEDULES, Task, held, plan, timed, wrong

TWICE = {"F": 1, "B": 2, "W": 0}


def end(schedule, size, n_micro, *units):
    return max(span.end for span in timed(plan(schedule, size, n_micro), *units))


def bubble(spans):  # the share of the ranks' time in which they wait
    end = max(span.end for span in spans) * (1 + max(span.rank for span in spans))
    return 1 - sum(span.end - span.begin for span in spans) / end


@pytest.mark.parametrize("p", range(1, 7))
@pytest.mark.parametrize("m", [6, 8, 13])
def test_the_bubble_is_the_formulas(p, m):
    for schedule in ("gpipe", "1f1b"):
        assert bubble(timed(plan(schedule, p, m))) == pytest.approx((p - 1) / (m + p - 1))
        assert bubble(timed(plan(schedule, p, m), TWICE)) == pytest.approx((p - 1) / (m + p - 1))
    if m >= 2 * p - 1:
        assert end("zero-bubble", p, m) == 3 * m + p - 1
    if m % p == 0:
        assert bubble(timed(plan("interleaved", p, m))) == pytest.approx((p - 1) / (2 * m + p - 1))


@pytest.mark.parametrize("p, m", [(4, 8), (3, 9), (5, 2)])
def test_one_forward_one_backward_holds_fewer_micro_batches(p, m):
    most = {name: [max(held(tasks)) for tasks in plan(name, p, m)] for name in SCHEDULES}
    assert most["gpipe"] == [m] * p
    assert most["1f1b"] == [min(p - rank, m) for rank in range(p)]
    assert most["zero-bubble"] == [min(p, m)] * p
    assert all(held(tasks)[-1] == 0 for name in SCHEDULES for tasks in plan(name, p, m))


def short(tasks):
    return " ".join(f"{task.kind}{task.micro}" for task in tasks)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_task_has_its_turn_once_on_any_number_of_ranks(schedule):
    for size in range(1, 10):
        for n_micro in range(1, 14):
            group = plan(schedule, size, n_micro)
            kinds = {task.kind for tasks in group for task in tasks}
            all_stages = range(SCHEDULES[schedule].chunks * size)
            wanted = {Task(k, s, i) for k in kinds for s in all_stages for i in range(n_micro)}
            assert {"F", "B"} <= kinds
            assert sorted(task for tasks in group for task in tasks) == sorted(wanted)
            assert all(t.stage % size == rank for rank in range(size) for t in group[rank])
            assert len(timed(group)) == len(wanted)  # raises where ranks wait for each other


def test_the_orders_are_those_of_the_papers():
    assert short(plan("gpipe", 2, 3)[0]) == "F0 F1 F2 B0 B1 B2"
    assert short(plan("1f1b", 2, 3)[0]) == "F0 F1 B0 F2 B1 B2"
    assert short(plan("1f1b", 2, 3)[1]) == "F0 B0 F1 B1 F2 B2"
    assert short(plan("zero-bubble", 2, 3)[0]) == "F0 F1 B0 W0 F2 B1 W1 B2 W2"
    assert short(plan("zero-bubble", 2, 3)[1]) == "F0 B0 F1 B1 W0 F2 B2 W1 W2"
    first = [f"{t.kind}{t.stage}.{t.micro}" for t in plan("interleaved", 2, 2)[0]]
    assert " ".join(first) == "F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("2f2b", 2, 3), "schedule: expected one of gpipe, 1f1b, interleaved, zero-bubble, got"),
        (("1f1b", 0, 3), "size: expected a whole number of at least 1, got 0"),
        (("1f1b", 2, 0), "n_micro: expected a whole number of at least 1, got 0"),
    ],
)
def test_what_is_no_plan_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        plan(*arguments)


def test_an_order_in_which_ranks_wait_for_each_other_is_refused():
    first = [Task("F", 0, 0), Task("B", 0, 1), Task("F", 0, 1), Task("B", 0, 0)]
    second = [Task(kind, 1, i) for i in range(2) for kind in "FB"]
    with pytest.raises(ValueError, match=r"plan: .* got rank 0 before \('B', 0, 1\), rank 1 befo"):
        timed([first, second])


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda group: group[:2], "a list of tasks for each of 3 ranks, got 2"),
        (lambda group: [group[0][1:], *group[1:]], "F of micro-batch 0 0 times, expected once"),
        (lambda group: [group[0] * 2, *group[1:]], "rank 0 does F of micro-batch 0 2 times"),
        (lambda group: [group[1], group[0], group[2]], "rank 0 does F of micro-batch 0 0 times"),
        (lambda group: [[*group[0], Task("W", 0, 0)], *group[1:]], "does W of micro-batch 1 0"),
        (lambda group: [[*group[0], Task("F", 5, 0)], *group[1:]], "has 9 tasks, expected 8"),
        (lambda group: [group[0][::-1], *group[1:]], "expected an order that comes to an end"),
        (lambda group: group, ""),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(change, text):
    assert wrong(plan("zero-bubble", 3, 4), 3, 4) == ""
    said = wrong(change(plan("1f1b", 3, 4)), 3, 4)
    assert text in said and bool(said) == bool(text)


def test_a_task_may_have_a_time_of_its_own():
    two = plan("gpipe", 2, 1)
    spans = timed(two, lambda task: 1.0 + task.stage)
    assert [(s.task.kind, s.task.stage, s.end) for s in spans] == [
        *(("F", 0, 1), ("F", 1, 3), ("B", 1, 5), ("B", 0, 6))
    ]
