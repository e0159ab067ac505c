"""The shape of the lessons."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from cnnlab.course import shape
from cnnlab.course.parts import number
from tests.source import NOTEBOOKS


@pytest.mark.parametrize(
    "path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: number(path.stem)
)
def test_a_lesson_has_its_shape(path):
    assert not shape.gaps(nbformat.read(path, as_version=4), path.stem)


# --- the rule itself ----------------------------------------------------------------------------

HEAD = """# 00 · Toy

A goal.

**Time:** about 40 minutes

**You need:** Python

**Afterwards you can**

- say a thing
- do a thing
"""
FOOT = """## Three questions

1. One?
2. Two?
3. Three?

## Two things to read

- a book
- a paper

## In this lesson we have

- come to the end
"""
EXERCISES = "## Exercises\n\n**1 ● One.** x\n\n**2 ●● Two.** y\n\n**3 ●●● Three.** z"


def whole(head=HEAD, foot=FOOT, exercises=EXERCISES, tags=("answers",), code="", check="", alt="A"):
    """A lesson that has all it needs, unless a part is given."""
    image = new_output("display_data", {"image/png": ""}, metadata={"image/png": {"alt": alt}})
    guesses = 'check.predict("a", 1, 2)\ncheck.predict(\n    "b", 1, 2)'
    cells = [
        new_markdown_cell(head + "\n[latency](glossary.md#latency)"),
        new_code_cell(code or f"{guesses}\nchallenge('relu', mine)", outputs=[image]),
        new_markdown_cell(exercises),
        new_code_cell(check or "exercise.parameters(7)"),
        new_markdown_cell("answers", metadata={"tags": list(tags)}),
        new_markdown_cell(foot),
    ]
    return new_notebook(cells=cells)


def test_a_whole_lesson_lacks_nothing():
    assert shape.gaps(whole(), "00_start_here") == set()


@pytest.mark.parametrize(
    "part, lacking",
    [
        ({"head": HEAD.replace("**Time:** about 40 minutes", "")}, {"head"}),
        ({"head": HEAD.replace("40", "some")}, {"head"}),
        ({"head": HEAD.replace("**You need:** Python", "**You need:**")}, {"head"}),
        ({"head": HEAD.replace("- do a thing", "")}, {"head"}),
        ({"foot": FOOT.replace("3. Three?", "")}, {"foot"}),
        ({"foot": FOOT.replace("- a paper", "- a paper\n- a third")}, {"foot"}),
        ({"foot": FOOT.replace("## Two things to read", "")}, {"foot"}),
        ({"code": "challenge('relu', mine)"}, {"predictions"}),
        ({"code": "challenge('relu', mine)\n" + 5 * "predict('a', 1, 2)\n"}, {"predictions"}),
        ({"code": "predict('a', 1, 2)\npredict('b', 1, 2)"}, {"challenge"}),
        ({"tags": ()}, {"answers"}),
        ({"check": 'check.value("a", 1, 2)'}, {"answers"}),
        ({"check": 'check.threaded("relu", mine)'}, {"answers"}),
        ({"exercises": EXERCISES.replace("**2 ●● ", "**2. ")}, {"marks"}),
        ({"exercises": EXERCISES.replace("●●●", "●●●●")}, {"marks"}),
        ({"exercises": "## Exercises\n\n**1 ● One.** x"}, {"marks"}),
        ({"alt": ""}, {"pictures"}),
    ],
)
def test_each_lack_is_named(part, lacking):
    name = "00_start_here" if lacking != {"challenge"} else "05_one_core"
    assert lacking <= shape.gaps(whole(**part), name)
    if name == "00_start_here":
        assert shape.gaps(whole(**part), name) == lacking
