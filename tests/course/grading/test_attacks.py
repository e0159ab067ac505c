"""No answer gets a point, or anything else, by other means than being right."""

import re
import time
from dataclasses import replace

import pytest

from cnnlab.course.grading import sandbox
from tests.course.grading.attacks import BODIES, CELLS
from tests.course.grading.hand_in import SHORT, function, of_cells

WALLED = not sandbox.walls()
# Without namespaces these are not stopped, and the grader says so.
NEED_WALLS = {
    "kills its parent", "kills all it may", "looks for the answers on the disk",
    "looks for other processes", "opens the network", "writes to the system", "asks the model",
    "mounts over the walls", "answers with the exercise",
}  # fmt: skip
ATTACKS = {
    name: (function("my_sums(latency, per_cycle)", body), word)
    for name, (body, word) in BODIES.items()
} | CELLS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gets_nothing(name, tmp_path, packages, monkeypatch):
    if name in NEED_WALLS and not WALLED:
        pytest.skip(sandbox.walls())
    monkeypatch.setenv("SECRET_OF_THE_GRADER", "42")
    code, word = ATTACKS[name]
    cells = code, "exercise.sums_under_way(my_sums);"
    began = time.monotonic()
    limits = SHORT if "not done" in word else replace(SHORT, wall=30)
    (row,) = of_cells(tmp_path, "06", ["sums_under_way"], cells, packages, limits)
    assert row["points"] == 0
    assert re.search(word, row["verdict"]), row["verdict"]
    assert len(row["verdict"]) < 500 and time.monotonic() - began < 60


def test_there_are_thirty_attacks():
    assert len(ATTACKS) >= 30
