"""Speed counts only where it is asked for, and what is timed is proved."""

from dataclasses import replace

import numpy as np
import pytest

from cnnlab.course.grading.grade import Plan, grade
from cnnlab.course.grading.speed import ratio
from tests.course.grading.hand_in import USUAL, asked, notebook

pytestmark = pytest.mark.slow

FAST = "def my_bias_gradient(dz, db):\n    dz.sum(axis=0, out=db)"
SLOW = "import time\n" + FAST.replace(":\n", ":\n    time.sleep(0.1);")
# Wrong from the third call on: it gives what it had before.
STALE = """
seen = {}
def my_bias_gradient(dz, db):
    kept = seen.setdefault(dz.shape, [])
    if len(kept) < 2: kept.append(dz.sum(axis=0))
    db[:] = kept[-1]
"""


@pytest.fixture
def groups(tmp_path, packages):
    """A function that gives the groups of an answer, by name."""

    def of(code, speed):
        (tmp_path / "00.ipynb").write_text(notebook(code))
        plan = Plan(asked("00", "bias_gradient"), 3, USUAL, *packages)
        (row,) = grade("a", tmp_path / "00.ipynb", replace(plan, speed=speed))["exercises"]
        return {group["name"]: (group["passed"], group["text"]) for group in row["groups"]}

    return of


def test_speed_is_a_ratio_with_a_range_and_only_on_request(groups):
    assert "speed" not in groups(FAST, None)
    passed, text = groups(FAST, 1e-6)["speed"]
    assert passed == 1 and "times the speed of vector, asked for 1e-06" in text
    assert groups(SLOW, 1e3)["speed"][0] == 0


def test_the_range_takes_both_clocks_at_their_word():
    seconds = np.array([[1.0, 3.0, 5.0]] * 9)
    assert ratio(seconds) == (0.5, 0.5)
    low, high = ratio(seconds + np.arange(9)[:, None] / 10)
    assert low < 0.5 < high
    assert ratio(seconds[:, [0, 1, 0]])[1] == np.inf and ratio(seconds[:, [0, 0, 2]]) == (0, 0)


def test_an_answer_that_is_right_only_until_it_is_timed_fails(groups):
    found = groups(STALE, 1e-6)
    assert found["speed"][0] == 0 and "expected" in found["speed"][1]
