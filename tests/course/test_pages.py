import base64
import io
import json
import re
from html.parser import HTMLParser

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from cnnlab.course import pages

ANSWER = "<details>\n<summary>One way</summary>\n\nIt is 937.\n\n</details>"


def figure(width, **density):
    file = io.BytesIO()
    Image.new("RGB", (width, 10)).save(file, "png", **density)
    return base64.b64encode(file.getvalue()).decode()


FIRST = """# 00 · First

See $x$.

## Steps & `more`

A [warp](glossary.md#warp)."""
EXERCISES = f"""## Exercises

How many?

{ANSWER}

## Exercises

Again.

<script>drawn(1 < 2)</script>"""
SECOND = """# 01 · Second

[back](00_first.ipynb#exercises)

## Warps

A warp.

## Contents"""


@pytest.fixture
def site(tmp_path):
    """Two lessons, the first with a figure and an answer, and a glossary."""
    drawn = [new_output("display_data", {"image/png": figure(40)})]
    code = new_code_cell("y = 2  # 1 < 2", outputs=drawn)
    first = [new_markdown_cell(FIRST), code, new_markdown_cell(EXERCISES)]
    lessons = {
        "00_first": new_notebook(cells=first),
        "01_second": new_notebook(cells=[new_markdown_cell(SECOND)]),
    }
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "glossary.md").write_text("# Glossary\n\n### warp\n\nThreads.")
    folder = tmp_path / "site"
    folder.mkdir()
    for name in lessons:
        (folder / f"{name}.ipynb").touch()
    tables = [("A step", [("device, on the emulator", "1 s", "base")])]
    pages.write(lessons, {"01_second"}, tables, tmp_path / "notebooks", folder)
    return folder


class Links(HTMLParser):
    """What a page links to, what it loads, its ids, and images without alternative text."""

    def __init__(self, text):
        super().__init__()
        self.to, self.loaded, self.ids, self.untold = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        (self.to if tag == "a" else self.loaded).extend(
            given[key] for key in ("href", "src") if key in given
        )
        if tag == "img" and not given.get("alt"):
            self.untold.append(given)


def test_links_lead_somewhere_and_nothing_comes_from_a_network(site):
    found = {file.name: Links(file.read_text()) for file in site.glob("*.html")}
    assert set(found) == {f"{n}.html" for n in ("index", "00_first", "01_second", "glossary")}
    for name, page in found.items():
        assert len(page.ids) == len(set(page.ids)) and not page.untold, name
        for link in page.to:
            file, _, anchor = link.partition("#")
            assert (site / (file or name)).is_file(), link
            assert not anchor or anchor in found[file or name].ids, link
        for link in page.loaded:
            assert link.startswith("data:") or (site / link).is_file(), link
    for file in ("course.css", "course.js"):
        assert "http" not in (site / file).read_text()


def test_a_page_has_the_lessons_its_contents_and_its_notebook(site):
    page = (site / "00_first.html").read_text()
    lessons, contents = (
        page.partition(f'id="{name}"')[2].partition("</nav>")[0] for name in ("lessons", "contents")
    )
    assert re.findall(r'current="page">([^<]+)', lessons) == ["00 · First"]
    assert "The network" in lessons and "01 · Second" in lessons and "Glossary" in lessons
    assert re.findall(r'href="#([^"]+)">([^<]+)<', contents) == [
        ("steps--more", "Steps &amp; more"),
        ("exercises", "Exercises"),
        ("exercises-1", "Exercises"),
    ]
    assert (
        'href="00_first.ipynb" download' in contents and 'rel="next" href="01_second.html"' in page
    )
    assert "on the emulator" in (site / "index.html").read_text()


def test_the_search_knows_each_section_but_no_answer(site):
    text = (site / "search.js").read_text().removeprefix("const SECTIONS = ").rstrip(";\n")
    known = {(s["page"], s["anchor"]): s["text"] for s in json.loads(text)}
    assert known["00_first", "steps--more"] == "A warp. y = 2 # 1 < 2"
    assert known["00_first", "exercises"] == "How many?"
    assert known["glossary", "warp"] == "Threads."
    assert "937" not in text and "drawn" not in text and "index" not in {page for page, _ in known}


def test_a_figure_is_as_wide_as_its_density_says():
    assert pages.width_in_css(figure(40)) == 40
    assert pages.width_in_css(figure(40, dpi=(200, 200))) == 20
