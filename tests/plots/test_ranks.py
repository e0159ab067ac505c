import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.plots import ranks
from cnnlab.plots.style import description
from cnnlab.ranks.record import Event, Message, Record
from cnnlab.ranks.virtual import Link, World

matplotlib.use("Agg")
LINK = Link(latency=1e-3, bandwidth=1e6, call=0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def chain(comm):
    """Each rank hands on a kilobyte."""
    a = np.zeros(1000, np.uint8)
    if comm.rank:
        comm.Recv(a, comm.rank - 1)
    comm.compute(2e-3)
    if comm.rank < comm.size - 1:
        comm.Send(a, comm.rank + 1)


def ran(n_ranks):
    world = World(n_ranks, LINK)
    world.run(chain)
    return world.record


def boxes(collection):
    corners = [path.get_extents() for path in collection.get_paths()]
    return [(round(box.x0, 9), round(box.x1, 9), round(box.y0 + 0.3)) for box in corners]


def test_a_run_is_drawn_as_it_was():
    ax = ranks.over_time(ran(3))
    computing, sending, waiting = ([b for c in ax.collections[3 * k : 3 * k + 3] for b in boxes(c)]
                                   for k in range(3))  # fmt: skip
    assert computing == [(0, 2, 0), (4, 6, 1), (8, 10, 2)]
    assert sending == [(2, 3, 0), (6, 7, 1)]
    assert waiting == [(0, 4, 1), (0, 8, 2)]
    arrows = [(text.xyann, text.xy) for text in ax.texts]
    assert np.allclose(arrows, [[(2, 0), (4, 1)], [(6, 1), (8, 2)]])


def test_the_legend_has_what_occurs_and_the_axis_ends_where_it_is_told():
    computed = Record(1, [Event(0, "compute", 0, 2e-3)])
    ax = ranks.over_time(computed, until=4e-3)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["computing"]
    traced = ranks.over_time(Record(1, [Event(0, "between", 0, 2e-3)]))
    assert [text.get_text() for text in traced.get_legend().get_texts()] == ["between calls"]
    assert ax.get_xlim() == (0, 4) and ax.get_xlabel() == "ms"


def test_virtual_and_slowed_time_are_called_that():
    virtual, real = ran(2), Record(2, [Event(0, "send", 0, 1e-5, 1, 8)], [])
    slowed = Record(2, real.events, real.messages, network="links of 1 s and 1 GB/s")
    for draw in (ranks.over_time, ranks.waiting):
        assert "virtual ms (links of 1 ms and 1 MB/s)" in draw(virtual).get_xlabel()
        assert "µs (network slowed to links of 1 s and 1 GB/s)" in draw(slowed).get_xlabel()
        assert draw(real).get_xlabel().endswith("µs")
    assert "slowed to links of 1 s" in ranks.by_pair(slowed).get_xlabel()
    text = description(ranks.over_time(virtual, title="A chain").figure, "")
    assert text.startswith("A chain. Horizontal: virtual ms")


def test_many_messages_are_lines_and_few_are_arrows(monkeypatch):
    monkeypatch.setattr(ranks, "ARROWS", 1)
    ax = ranks.over_time(ran(3))
    assert not ax.texts
    assert np.allclose(ax.collections[-1].get_segments(), [[(2, 0), (4, 1)], [(6, 1), (8, 2)]])


def test_pairs_have_their_bytes_and_messages():
    ax = ranks.by_pair(ran(3))
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {(1, 0): "1.00 kB\n1 ×", (2, 1): "1.00 kB\n1 ×"}  # (column, row)
    shown = ax.images[0].get_array()
    assert shown[0, 1] == 1000 and np.ma.is_masked(shown[1, 0])
    ax = ranks.by_pair(ran(64))
    assert not ax.texts and ax.figure.axes[1].get_ylabel() == "bytes"
    assert not ranks.by_pair(Record(2)).texts


def test_waiting_is_labelled_at_the_ends_of_bars():
    ax = ranks.waiting(ran(3))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0, 4, 8])
    assert [text.get_text() for text in ax.texts] == ["0 ns, 0%", "4.00 ms, 40%", "8.00 ms, 80%"]


def test_bytes_have_units():
    assert [ranks.in_bytes(n) for n in (0, 999, 1500, 2.5e6, 3e9)] == [
        "0 B", "999 B", "1.50 kB", "2.50 MB", "3.00 GB",
    ]  # fmt: skip


def test_messages_to_and_fro_are_both_there():
    record = Record(2, [], [Message(0, 1, 8, 0, 1), Message(1, 0, 4, 1, 2)])
    assert sorted(t.get_text() for t in ranks.by_pair(record).texts) == ["4 B\n1 ×", "8 B\n1 ×"]


def test_what_a_real_rank_sends_and_receives_at_once_are_both_seen():
    both = [Event(0, "send", 0, 2e-6, 0, 8), Event(0, "receive", 0, 2e-6, 0, 8)]
    ax = ranks.over_time(Record(1, both))
    places = [c.get_paths()[0].get_extents() for c in ax.collections if c.get_paths()]
    (top, bottom) = sorted((round(box.y0, 6), round(box.y1, 6)) for box in places)
    assert (top, bottom) == ((-0.3, 0), (0, 0.3))
