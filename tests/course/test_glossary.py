"""The glossary of the lessons: each term once, in order, and every link to it leads somewhere."""

import re

import nbformat
import pytest

from cnnlab.course import pages
from cnnlab.course.parts import number
from tests.source import NOTEBOOKS

TEXT = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
HEAD, *ENTRIES = re.split(r"^### ", TEXT, flags=re.MULTILINE)
TERMS = {entry.partition("\n")[0]: entry.partition("\n")[2].strip() for entry in ENTRIES}
LINK = re.compile(r"\]\(glossary\.md(?:#([^)\s]*))?\)")
ANCHORS = set(map(pages.anchor, TERMS))


def links(text):
    """The anchors of the glossary that a text names; "" for a link to the page as a whole."""
    return {found[1] or "" for found in LINK.finditer(text)}


def test_terms_are_in_order_and_defined_once():
    terms = [entry.partition("\n")[0].lower() for entry in ENTRIES]
    assert terms == sorted(set(terms)) and len(terms) > 60
    assert len(ANCHORS) == len(terms)


@pytest.mark.parametrize("term", TERMS)
def test_a_definition_is_short_and_is_no_mere_heading(term):
    assert 30 < len(TERMS[term]) <= 240 and "\n" not in TERMS[term]
    assert TERMS[term].endswith((".", "*.", ").")) and not TERMS[term].lower().startswith(
        term + " is"
    )


def test_the_terms_that_every_part_uses_are_there():
    assert ANCHORS >= {
        "latency", "bandwidth", "throughput", "cache-line", "false-sharing", "warp", "occupancy",
        "divergence", "bank-conflict", "stationarity", "reduction", "work", "depth", "roofline",
        "arithmetic-intensity", "speedup", "efficiency", "race", "barrier", "allreduce",
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: number(path.stem)
)
def test_every_link_of_a_lesson_to_the_glossary_resolves(path):
    cells = nbformat.read(path, as_version=4).cells
    asked = set().union(*(links(cell.source) for cell in cells))
    assert not asked - ANCHORS - {""}
    assert not any(re.search(r"glossary\.(html|ipynb)", cell.source) for cell in cells)


def test_an_anchor_is_what_the_page_calls_the_heading():
    assert pages.anchor("Amdahl's law") == "amdahls-law"
    assert pages.anchor("scaling, <em>strong</em> and weak") == "scaling-strong-and-weak"
    assert links("[a](glossary.md#race) and [b](glossary.md)") == {"race", ""}
