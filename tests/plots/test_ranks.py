import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.error import UsageError

from cnnlab.plots import ranks
from cnnlab.plots.style import description
from cnnlab.ranks.record import Event, Record
from cnnlab.ranks.virtual import Link, World

LINK = Link(latency=1e-3, bandwidth=1e6, call=0)


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


def test_the_legend_has_what_occurs_and_the_axis_begins_at_0():
    computed = Record(1, [Event(0, "compute", 0, 2e-3)])
    ax = ranks.over_time(computed)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["computing"]
    assert ax.get_xlim()[0] == 0 and ax.get_xlabel() == "ms"


def test_virtual_time_is_called_that():
    virtual, real = ran(2), Record(2, [Event(0, "send", 0, 1e-5, 1, 8)], [])
    draw = ranks.over_time
    assert "virtual ms (links of 1 ms and 1 MB/s)" in draw(virtual).get_xlabel()
    assert draw(real).get_xlabel().endswith("µs")
    text = description(ranks.over_time(virtual, title="A chain").figure, "")
    assert text.startswith("A chain. Horizontal: virtual ms")


def test_many_messages_are_lines_and_few_are_arrows(monkeypatch):
    monkeypatch.setattr(ranks, "ARROWS", 1)
    ax = ranks.over_time(ran(3))
    assert not ax.texts
    assert np.allclose(ax.collections[-1].get_segments(), [[(2, 0), (4, 1)], [(6, 1), (8, 2)]])


NAMES = """
import numpy as np
from cnnlab.ranks import collectives
a = np.arange(4, dtype=np.float32)
def both(comm):
    x = a + comm.rank
    collectives.allreduce(comm, x, "butterfly")
    return x.sum()
"""


@pytest.fixture(scope="module")
def shell(ipython):
    ipython.run_line_magic("load_ext", "cnnlab.plots.ranks")
    ipython.run_cell(NAMES)
    return ipython


@pytest.fixture
def said(shell, capsys):
    def run(line, cell):
        plt.close("all")
        shell.run_cell_magic("ranks", line, cell)
        return capsys.readouterr().out.splitlines()

    yield run


def test_a_cell_runs_on_every_virtual_rank_with_the_names_of_the_notebook(said):
    lines = said("64 --link 1ms,1GB/s", "comm.compute(1e-3)\nboth(comm)")
    assert re.fullmatch(r"all 64 ranks: (np.float32\()?8448.0\)?", lines[0])
    what = "64 virtual ranks, links of 1 ms and 1 GB/s: 7.01 ms virtual, 384 messages, 6.14 kB"
    assert lines[1:] == [what] and not plt.get_fignums()
    assert said("64 --link 1ms,1GB/s", "comm.compute(1e-3)\nboth(comm)") == lines


def test_each_rank_has_arrays_of_its_own_and_prints_in_its_turn(said, shell):
    lines = said("2", "a[0] += 1 + rank\nprint(a[0], size)\nits_own = [rank]\nits_own")
    assert lines[:4] == ["rank 0: 1.0 2", "rank 1: 2.0 2", "rank 0: [0]", "rank 1: [1]"]
    assert shell.user_ns["a"][0] == 0 and "its_own" not in shell.user_ns
    assert said("20", "10 * rank")[4:8] == ["rank 4: 40", "rank 5: 50", "…", "rank 19: 190"]
    assert len(said("3", "rank;")) == 1


def test_few_ranks_are_drawn_and_the_record_is_kept(said, shell):
    said("3 kept", "comm.Barrier()")
    kept = shell.user_ns["kept"]
    assert isinstance(kept, Record) and len(kept.messages) == 6
    (figure,) = map(plt.figure, plt.get_fignums())
    assert figure.get_suptitle().startswith("3 virtual ranks, links of 10 µs and 1 GB/s: ")


@pytest.mark.parametrize(
    "line, cell, text",
    [
        ("4", "x = 1\n1 / (rank - 2)", "rank 2, cell:3: ZeroDivisionError: division by zero"),
        ("2", "comm.Recv(a, 1 - rank)", "rank 0, cell:2: deadlock: rank 0 waits for rank 1"),
        ("2", "comm.Fly()", "rank 0, cell:2: comm.Fly: the virtual world does not know it"),
        ("2", "x ==", "SyntaxError: invalid syntax (cell, line 2)"),
        ("0", "1", "expected a whole number of at least 1, got 0"),
        ("two", "1", "argument n_ranks"),
        ("2 --link fast", "1", "link: expected a text such as 10us,1GB/s, got 'fast'"),
    ],
)
def test_what_is_wrong_is_one_line(said, line, cell, text):
    with pytest.raises(UsageError) as error:
        said(line, cell)
    message = str(error.value)
    assert message.startswith(f"%%ranks {line}: ") and text in message and "\n" not in message
