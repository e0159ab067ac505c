import time
from types import SimpleNamespace

from cnnlab.lessons import lesson_10


def test_each_task_is_stamped_on_the_thread_of_its_plan():
    result = lesson_10.stamped(lambda i: time.sleep(0.01 * i), [[3, 1], [2]])
    assert sorted((s.thread, s.task) for s in result) == [(0, 1), (0, 3), (1, 2)]
    assert all(s.end - s.begin >= 0.009 * s.task and s.begin >= 0 for s in result)
    first, second = (s for s in result if s.thread == 0)
    assert first.end <= second.begin, "a thread does one task at a time"


def test_an_iterator_in_the_plan_twice_is_a_queue():
    queue = iter([5, 1, 1, 1])
    result = lesson_10.stamped(lambda i: time.sleep(0.05 * i), [queue, queue])
    assert len(result) == 4
    assert sorted(sum(s.thread == t for s in result) for t in (0, 1)) == [1, 3]


def test_of_several_runs_the_one_that_ends_in_the_middle_counts(monkeypatch):
    now, lengths = [0.0], iter([3.0, 1.0, 1.0, 1.0, 2.0, 1.0])

    def task(i):
        now[0] += next(lengths)

    clock = SimpleNamespace(perf_counter=lambda: now[0], sleep=lambda s: None)
    monkeypatch.setattr(lesson_10, "time", clock)
    result = lesson_10.stamped(task, [iter([7, 8])], repeats=3)
    assert [(s.task, s.begin, s.end) for s in result] == [(7, 0, 2), (8, 2, 3)]


def test_spans_are_drawn_where_they_were():
    result = [lesson_10.TaskSpan(0, 0, 0.0, 0.002), lesson_10.TaskSpan(1, 1, 0.001, 0.004)]
    (ax,) = lesson_10.spans({"blocks": result}, title="T")
    boxes = sorted((round(b.get_x(), 6), round(b.get_width(), 6)) for b in ax.patches)
    assert boxes == [(0, 2), (1, 3)]
    assert ax.get_title(loc="left") == "blocks: 4 ms"
