"""The guide for whoever teaches: an entry for every lesson, and all its links lead somewhere."""

import base64
import copy
import functools
import io
import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from cnnlab.course import pages, parts, teaching
from cnnlab.measure.bench import MEASUREMENTS
from tests.source import NOTEBOOKS

TEXT = (NOTEBOOKS / "teaching.md").read_text(encoding="utf-8")
LESSONS = [lesson for part in parts.parts() for lesson in part.lessons]
ENTRIES = {found[2]: found for found in teaching.ENTRY.finditer(TEXT)}


@functools.cache
def notebook(name):
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def test_every_lesson_has_its_entry_in_order():
    headings = [found[1].strip() for found in ENTRIES.values()]
    due = [f"### [{lesson.heading[2:]}]({lesson.name}.ipynb)" for lesson in LESSONS]
    assert headings == due


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_refutes_beliefs_by_cells_of_its_lesson_and_answers_its_questions(name):
    beliefs, _, answers = ENTRIES[name][3].partition("\n1. ")
    said = re.findall(r"^- “.+", beliefs, re.MULTILINE)
    assert 2 <= len(said) <= 4 and len(said) == beliefs.count("\n- ")
    for line in said:
        assert [of for of, _ in teaching.QUOTED.findall(line)] == [name], line
    assert len(teaching.questions(notebook(name))) == 3
    assert re.findall(r"^(\d)\. ", f"1. {answers}", re.MULTILINE) == ["1", "2", "3"]


def test_every_quotation_is_in_one_code_cell():
    quoted = teaching.QUOTED.findall(TEXT)
    assert len(quoted) == TEXT.count('.ipynb "') > 60
    wrong = [of for of in quoted if len(teaching.cells_with(notebook(of[0]), of[1])) != 1]
    assert not wrong


def test_the_page_links_to_cells_and_headings_that_are_there():
    page = teaching.filled(TEXT, NOTEBOOKS, {})
    anchors = {
        file.stem: set(map(pages.anchor, re.findall(r"^#+ (.+)", file.read_text("utf-8"), re.M)))
        for file in NOTEBOOKS.glob("*.md")
    }
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    assert sum("#cell-id=" in link for link in links) == TEXT.count('.ipynb "')
    for link in links:
        file, _, anchor = link.partition("#")
        assert (NOTEBOOKS / file).is_file(), link
        if file.endswith(".md"):
            assert not anchor or anchor in anchors[file.removesuffix(".md")], link
        elif anchor:
            ids = [cell.id for cell in notebook(file.removesuffix(".ipynb")).cells]
            assert anchor.removeprefix("cell-id=") in ids, link
    for mark in (teaching.LESSONS, teaching.MACHINES, f"| {teaching.SUM} |"):
        assert mark in TEXT and mark not in page


def test_the_semester_has_every_lesson_but_those_it_leaves_out():
    semester = TEXT.partition("### A semester")[2].partition("\n### ")[0]
    left = re.search(r"Lessons (\d+) and (\d+) are left", semester)
    taken = teaching.LINKED.findall(semester)
    assert taken == [lesson.name for lesson in LESSONS if lesson.number not in left.groups()]


def test_the_page_says_what_was_recorded():
    assert "All of them have two cores and no GPU" in TEXT
    assert "Nothing has been recorded yet on a laptop, on Colab, on a server or on a GPU" in TEXT
    for file in MEASUREMENTS.glob("bench-*.json"):
        here = json.loads(file.read_text(encoding="utf-8"))["machine"]
        assert here["usable_cores"] == 2 and not here["gpu"], "now the page must say so"


# --- what is drawn ------------------------------------------------------------------------------

HEAD = """# 00 · Toy

A goal.

**Time:** about 40 minutes

**You need:** a pen

**Afterwards you can**

- say a thing
- do a thing"""
FOOT = "## Three questions\n\n1. One?\n2. Two?\n\n## Two things to read\n\n1. No question."
GUIDE = """# Guide

| [00](00_toy.ipynb), [00](00_toy.ipynb) | Σ |

<!-- the lessons -->

### [00 · Toy](00_toy.ipynb)

- “No.” [cell](00_toy.ipynb "y = 2")
- “Gone.” [cell](00_toy.ipynb "y = 3")

1. First.
2. Second.

### [01 · Gone](01_gone.ipynb)

- “No.” [cell](01_gone.ipynb "y = 2")

1. First.

## After

<!-- the machines -->"""


def figure(title, axis="seconds"):
    alt = {"image/png": {"alt": f"{title}. Horizontal: {axis}."}}
    dot = io.BytesIO()
    Image.new("RGB", (1, 1)).save(dot, "png")
    png = base64.b64encode(dot.getvalue()).decode()
    return new_output("display_data", {"image/png": png}, metadata=alt)


@pytest.fixture
def toy():
    said = (
        "conv_forward\nA call is 2.00 times faster with a than with b (1.90 to 2.10).\nIt is (ok)."
    )
    outputs = [
        new_output("stream", text=said),
        figure("Twice 1.5 times"),
        figure("Ranks wait 9% of it", "virtual ms"),
        figure("5 accesses, at fault: 3 times"),
        figure("Three orders"),
    ]
    times = {
        "iopub.execute_input": "2024-01-01T00:00:00",
        "shell.execute_reply": "2024-01-01T00:00:41",
    }
    ran = {"metadata": {"execution": times}}
    code = new_code_cell("# takes about 1 min\ny = 2", outputs=outputs, **ran)
    return new_notebook(cells=[new_markdown_cell(HEAD), code, new_markdown_cell(FOOT)])


def test_what_a_lesson_measured_is_said_with_its_world(toy):
    told = ["`conv_forward`: A call is 2.00 times faster with a than with b (1.90 to 2.10)"]
    told += ["Twice 1.5 times", "Ranks wait 9% of it (virtual)"]
    assert teaching.measured(toy) == told
    toy.cells.append(new_code_cell("%load_ext cnnlab.cuda"))
    assert teaching.measured(toy) == told
    toy.cells[-1].outputs.append(new_output("stream", text="no GPU, so the emulator runs them"))
    assert teaching.measured(toy)[1] == "Twice 1.5 times (on the emulator)"


def test_a_page_draws_an_entry_from_its_lesson_and_links_its_cell(toy, tmp_path):
    folder, built = tmp_path / "notebooks", tmp_path / "site"
    folder.mkdir()
    built.mkdir()
    stored = copy.deepcopy(toy)
    stored.cells[1].metadata = {}  # times are not stored
    nbformat.write(stored, folder / "00_toy.ipynb")
    (folder / "teaching.md").write_text(GUIDE, encoding="utf-8")
    pages.write({"00_toy": toy}, set(), [], folder, built)
    lesson, page = ((built / f"{n}.html").read_text("utf-8") for n in ("00_toy", "teaching"))
    to_cell, gone = re.findall(r'<a href="([^"]+)">cell', page)[:2]
    assert to_cell == f"00_toy.html#cell-id={toy.cells[1].id}" and gone == "00_toy.html"
    assert f'id="{to_cell.partition("#")[2]}"' in lesson
    plain = pages.plain(re.sub(r"</?(details|summary)>", "", page))
    assert "00, 00 | 80" in plain and "00 · Toy 40 about 60 s 41 s 00 · Toy" in plain
    for drawn in ("40 minutes. Before: a pen", "say a thing do a thing", "One? Two?"):
        assert drawn in plain
    assert "What a good answer says First. Second. Measured on two cores" in plain
    assert "01 · Gone# “No.” cell First." in plain  # as it was written
    assert "No question" not in plain and 'id="01--gone"' in page and 'id="after"' in page


def test_machines_are_told_by_their_reports(tmp_path):
    def row(kernels, seconds):
        interval = [0.9 * seconds, 1.1 * seconds]
        return {"kernels": kernels, "seconds_per_epoch": seconds, "seconds_interval": interval}

    machine = {"cpu": "A", "usable_cores": 8, "simd": "AVX2, 8 float32 lanes"}
    report = {"machine": machine, "results": [row("vector", 1), row("loops", 10)]}
    (tmp_path / "bench-a.json").write_text(json.dumps(report))
    (tmp_path / "search-b.json").write_text("{}")
    head, _, told = teaching.machines(tmp_path).split("\n")
    assert told == "| A | 8 | AVX2 | 9.00 s to 11.0 s | 900 ms to 1.10 s |  | 10.0 times |  |"
    assert head.count("|") == told.count("|")
