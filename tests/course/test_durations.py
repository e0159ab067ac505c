from datetime import datetime, timedelta

import pytest
from nbformat import v4

from cnnlab.course import durations


def took(seconds, source, tags=()):
    start = datetime(2024, 1, 1)
    times = {"iopub.execute_input": start, "shell.execute_reply": start + timedelta(0, seconds)}
    noted = {name: time.isoformat() + "Z" for name, time in times.items()}
    return v4.new_code_cell(source, metadata={"execution": noted, "tags": list(tags)})


@pytest.mark.parametrize(
    "seconds, about",
    [
        (5, "10 s"), (14.9, "10 s"), (15, "20 s"), (29, "20 s"), (49, "40 s"), (50, "1 min"),
        (89, "1 min"), (100, "2 min"), (599, "5 min"),
    ],
)  # fmt: skip
def test_a_slow_cell_says_in_coarse_steps_how_long_it_takes(seconds, about):
    nb = v4.new_notebook(cells=[took(seconds, "a = 1\nb = 2")])
    for _ in range(2):  # again, nothing changes
        durations.tell(nb)
        assert nb.cells[0].source == f"# takes about {about}\na = 1\nb = 2"
    nb.cells[0] = took(4.9, nb.cells[0].source)  # on a faster machine
    durations.tell(nb)
    assert nb.cells[0].source == "a = 1\nb = 2"


def test_a_cell_magic_stays_first_and_stamped_cells_stay_as_they_are():
    cells = [took(9, "%%px\na = 1"), took(9, "b", ["setup"]), took(9, "c", ["kernel:loops.relu"])]
    nb = v4.new_notebook(cells=[*cells, v4.new_markdown_cell("d"), v4.new_code_cell("e")])
    durations.tell(nb)
    sources = [cell.source for cell in nb.cells]
    assert sources == ["%%px\n# takes about 10 s\na = 1", "b", "c", "d", "e"]


def test_the_comments_of_a_lesson_are_added_up():
    cells = [took(9, "# takes about 20 s\na"), took(9, "%%px\n# takes about 2 min\na = 1")]
    cells.append(v4.new_code_cell("x  # takes about 5 min"))
    assert durations.noted(v4.new_notebook(cells=cells)) == 140
