"""The page with all ways to train together has a row for each of them, and its links lead there."""

import re
from pathlib import Path

import pytest

from cnnlab.distributed import METHODS
from cnnlab.distributed.compressors import COMPRESSORS
from cnnlab.training import OPTIMIZERS

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "methods.md"
LISTS = {"--ranks": METHODS, "--compress": COMPRESSORS, "--optimizer": OPTIMIZERS}


def sections():
    """By heading, what is below."""
    _, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    return dict(part.split("\n", 1) for part in parts)


def tables():
    """Sections by the option that their heading names."""
    named = {re.search(r"`(--[a-z]+)`", heading): text for heading, text in sections().items()}
    return {option[1]: text for option, text in named.items() if option}


@pytest.mark.parametrize("option", LISTS)
def test_each_of_them_has_a_row(option):
    rows = re.findall(r"^\| `([a-z0-9_]+)` \|", tables()[option], re.M)
    assert sorted(rows) == sorted(LISTS[option])


def test_those_without_an_option_have_one_too():
    text = sections()["Others, in the lessons"]
    rows = re.findall(r"^\| \[?([\w -]+)\b.* \|$", text, re.M)
    assert rows[1:] == ["backup workers", "Hogwild", "ensemble"]
    assert "| `server --staleness S` |" in tables()["--ranks"]


def test_rows_are_whole_and_name_a_lesson():
    lines = [line for text in sections().values() for line in text.splitlines()]
    rows = [line for line in lines if line[:2] == "| " and line[:6] not in ("| name", "| --- ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert widths == {5, 6}
    for line in rows:
        lessons = re.findall(r"\]\((\w+\.ipynb)\)", line)
        assert lessons and all((PAGE.parent / name).is_file() for name in lessons), line


def test_its_terms_are_in_the_glossary():
    glossary = (PAGE.parent / "glossary.md").read_text(encoding="utf-8")
    for anchor in re.findall(r"glossary\.md#([\w-]+)", PAGE.read_text(encoding="utf-8")):
        assert f"### {anchor.replace('-', ' ')}\n" in glossary.lower()
