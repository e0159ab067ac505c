import json
import re

import pytest

from cnnlab.lessons import lesson_12

LOG = [("x", "read", 0), ("b", "read", 0), ("x", "read", 3), ("z", "write", 1)]
SHAPES = {"x": (2, 2), "z": (1, 2)}


def test_the_stepper_has_every_access_to_the_arrays_that_it_draws():
    page = lesson_12.stepper({"one": LOG}, SHAPES, start=2)._repr_html_()
    data = json.loads(re.search(r"= (\{.*\}), names", page)[1])
    assert data == {
        "logs": {"one": [[0, 0, 0], [0, 0, 3], [1, 1, 1]]},
        "shapes": {"x": [2, 2], "z": [1, 2]},
    }
    assert 'max="3" value="2"' in page


@pytest.mark.parametrize("at, outlined", [(1, [1, 0]), (3, [2, 1])])
def test_moments_outline_the_last_accesses(at, outlined):
    axes = lesson_12.moments({"one": LOG}, SHAPES, at=[at], title="T")
    assert [len(ax.patches) for ax in axes[0]] == outlined
