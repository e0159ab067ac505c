"""Schedules: every task once, in an order that comes to an end."""

import pytest

from cnnlab.ranks.pipeline import SCHEDULES, Task, plan, timed


def short(tasks):
    return " ".join(f"{task.kind}{task.micro}" for task in tasks)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_task_has_its_turn_once_on_any_number_of_ranks(schedule):
    chunks = SCHEDULES[schedule].chunks
    for size in range(1, 10):
        for n_micro in range(1, 14):
            group = plan(schedule, size, n_micro)
            kinds = {task.kind for tasks in group for task in tasks}
            wanted = {
                Task(kind, stage, i)
                for kind in kinds
                for stage in range(chunks * size)
                for i in range(n_micro)
            }
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
