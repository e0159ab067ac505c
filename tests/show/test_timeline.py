import time

import matplotlib
import matplotlib.pyplot as plt

from cnnlab.show import timeline

matplotlib.use("Agg")


def test_each_task_is_stamped_on_the_thread_of_its_plan():
    found = timeline.stamped(lambda i: time.sleep(0.01 * i), [[3, 1], [2]])
    assert sorted((s.thread, s.task) for s in found) == [(0, 1), (0, 3), (1, 2)]
    assert all(s.end - s.begin >= 0.009 * s.task and s.begin >= 0 for s in found)
    first, second = (s for s in found if s.thread == 0)
    assert first.end <= second.begin, "a thread does one task at a time"


def test_an_iterator_in_the_plan_twice_is_a_queue():
    queue = iter([5, 1, 1, 1])
    found = timeline.stamped(lambda i: time.sleep(0.05 * i), [queue, queue])
    assert len(found) == 4
    assert sorted(sum(s.thread == t for s in found) for t in (0, 1)) == [1, 3]


def test_spans_are_drawn_where_they_were():
    found = [timeline.Span(0, 0, 0.0, 0.002), timeline.Span(1, 1, 0.001, 0.004)]
    (ax,) = timeline.spans({"blocks": found}, title="T")
    boxes = sorted((round(b.get_x(), 6), round(b.get_width(), 6)) for b in ax.patches)
    assert boxes == [(0, 2), (1, 3)]
    assert ax.get_title(loc="left") == "blocks: 4 ms"
    plt.close("all")
