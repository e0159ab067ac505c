"""What is listed of the course, and the tables and pages beside the lessons that follow from it."""

import functools
import json
import re
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnnlab.course import pages, parts, tables
from cnnlab.course.parts import NOTEBOOKS, ROOT
from tests.course.toy_lesson import GITHUB

LESSONS = list(parts.lessons().values())
GLOSSARY, METHODS, TEACHING = (
    (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8")
    for name in ("glossary", "methods", "teaching")
)
ENTRIES = dict(re.findall(r"(?ms)^### \[[^\]]*\]\((\w+)\.ipynb\)\n(.*?)(?=^#|\Z)", TEACHING))


@functools.cache
def notebook(name):
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


# --- lessons.toml and pyproject.toml ------------------------------------------------------------


def test_the_lessons_listed_are_the_notebooks_in_order_under_their_titles():
    files = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert [lesson.name for lesson in LESSONS] == [file.stem for file in files]
    titles = {}
    for lesson in LESSONS:
        titles.setdefault(lesson.part, lesson.name[0])
    assert list(titles.values()) == sorted(set(titles.values()))
    for lesson in LESSONS:
        assert re.fullmatch(rf"{titles[lesson.part]}\d[a-z]?_[a-z_0-9]+", lesson.name)
        assert notebook(lesson.name).cells[0].source.split("\n")[0] == lesson.heading
    assert parts.part("00_not_listed") == "The network" and parts.part("90_x") == "More"


def test_lessons_are_chosen_by_the_beginnings_of_their_names(tmp_path):
    with pytest.raises(ValueError, match=r"lessons: expected notebooks in .*, got none"):
        parts.find_lessons([], tmp_path)
    files = [tmp_path / f"{name}.ipynb" for name in ("00_a", "01_b", "10_c")]
    for file in files:
        file.touch()
    assert parts.find_lessons([], tmp_path) == files
    assert parts.find_lessons(["1", "00"], tmp_path) == [files[0], files[2]]
    with pytest.raises(ValueError, match="beginning of one of 00_a, 01_b, 10_c, got '2'"):
        parts.find_lessons(["2"], tmp_path)


def test_the_address_and_the_lowest_versions_come_from_pyproject(tmp_path):
    file = tmp_path / "pyproject.toml"
    for address, expected in (
        (None, None),
        (GITHUB, GITHUB),
        (f"{GITHUB}.git", GITHUB),
        (f"{GITHUB}/", GITHUB),
    ):
        line = f"Repository = {json.dumps(address)}" if address else ""
        file.write_text(f'[project]\nname = "x"\n[project.urls]\n{line}\n')
        assert parts.repository(file) == expected
    for address in ("github.com/a/b", "https://host", 'https://a/b" --pre "'):
        file.write_text(f"[project]\n[project.urls]\nRepository = {json.dumps(address)}\n")
        with pytest.raises(ValueError, match=r"\[project.urls\] Repository: expected https"):
            parts.repository(file)
    file.write_text(
        '[project]\ndependencies = ["a>=1.2", "b"]\n'
        '[project.optional-dependencies]\nx = ["c>=3,<4"]\n'
    )
    assert parts.lowest(file) == ["a==1.2", "c==3"]


# --- tables -------------------------------------------------------------------------------------


def test_every_table_is_up_to_date():
    assert not tables.outdated(ROOT), "make stamp"


def test_outdated_tables_are_written_anew(tmp_path):
    (tmp_path / "notebooks").symlink_to(NOTEBOOKS)
    text, readme = (ROOT / "README.md").read_text(encoding="utf-8"), tmp_path / "README.md"
    readme.write_text(re.sub(r"\| Threads \|.*\n", "", text), encoding="utf-8")
    assert list(tables.outdated(tmp_path)) == [readme]
    tables.write(tmp_path)
    assert readme.read_text(encoding="utf-8") == text
    readme.write_text("no table")
    with pytest.raises(ValueError, match="tables: expected the lines '<!-- lessons, by make rende"):
        tables.write(tmp_path)


def test_a_new_method_gets_a_row_with_its_summary_and_one_that_is_gone_loses_its_own():
    entry = SimpleNamespace(summary="as nobody has tried")
    lists = {option: dict(entries) for option, entries in tables.LISTS.items()}
    lists["--ranks"] = {**lists["--ranks"], "toy": entry}
    del lists["--compress"]["topk"]
    text = tables.methods(METHODS, lists)
    ranks, compressors = text.partition("## Compressors")[::2]
    assert "| `toy` | as nobody has tried | | | |\n" in ranks and "| `topk`" not in compressors
    assert tables.methods(text, tables.LISTS).count("| `topk`") == 1
    without = re.sub(r"\| `(toy|topk)` .*\n", "", METHODS)
    assert re.sub(r"\| `(toy|topk)` .*\n", "", text) == without  # what was written by hand stays


def test_each_method_and_compressor_and_optimiser_has_a_whole_row_that_names_a_lesson():
    rows = [line for line in METHODS.splitlines() if re.match(r"\| [`\w\[]", line)]
    rows = [line for line in rows if not line.startswith("| name")]
    names = {name for entries in tables.LISTS.values() for name in entries}
    assert names <= set(re.findall(r"^\| `(\w+)", "\n".join(rows), re.MULTILINE))
    for line in rows:
        lessons = re.findall(r"\]\((\w+\.ipynb)\)", line)
        assert lessons and line.count(" |") in (4, 5) and "| |" not in line, line


# --- the glossary -------------------------------------------------------------------------------


def test_links_to_a_term_lead_to_one():
    terms = re.findall(r"^### (.*)", GLOSSARY, re.MULTILINE)
    known = {re.sub(r"[^\w-]", "", term.lower().replace(" ", "-")) for term in terms}
    for lesson in LESSONS:
        texts = "\n".join(cell.source for cell in notebook(lesson.name).cells)
        dead = set(re.findall(r"glossary\.md#([^)]*)\)", texts)) - known
        assert not dead, f"{lesson.name}: no term of the glossary: {dead}"


def test_terms_are_in_order_defined_once_and_briefly():
    _, *entries = re.split(r"^### ", GLOSSARY, flags=re.MULTILINE)
    terms = {entry.partition("\n")[0]: entry.partition("\n")[2].strip() for entry in entries}
    lower = [term.lower() for term in terms]
    assert lower == sorted(set(lower)) and len(entries) == len(terms) > 60
    for term, text in terms.items():
        assert 30 < len(text) <= 240 and "\n" not in text, term
        assert text.endswith((".", "*.", ").")), term
        assert not text.lower().startswith(f"{term} is"), term
    assert {"latency", "roofline", "speedup", "race", "allreduce", "false sharing"} <= set(lower)
    assert {"softmax", "overfitting", "gradient checkpointing", "horovod", "nccl"} <= set(lower)
    assert {"DDP", "FSDP"} <= set(terms)


# --- the guide for whoever teaches --------------------------------------------------------------


def test_every_lesson_has_its_entry_in_order():
    headings = re.findall(r"^### (\[.*\]\(\w+\.ipynb\))$", TEACHING, re.MULTILINE)
    assert headings == [f"[{lesson.heading[2:]}]({lesson.name}.ipynb)" for lesson in LESSONS]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_refutes_beliefs_by_cells_of_its_lesson_and_answers_three_questions(name):
    beliefs = re.findall(r"^- “.+", ENTRIES[name], re.MULTILINE)
    assert 2 <= len(beliefs) <= 4
    for line in beliefs:
        assert [lesson for lesson, _ in pages.QUOTED.findall(line)] == [name], line
    assert re.findall(r"^(\d)\. ", ENTRIES[name], re.MULTILINE) == ["1", "2", "3"]


def test_every_quotation_is_in_one_code_cell():
    quoted = pages.QUOTED.findall(TEACHING)
    assert len(quoted) == TEACHING.count('.ipynb "') > 60
    for name, words in quoted:
        code = [cell.source for cell in notebook(name).cells if cell.cell_type == "code"]
        assert sum(words in source for source in code) == 1, (name, words)


def test_the_semester_has_every_lesson_but_those_it_leaves_out():
    semester = TEACHING.partition("### A semester")[2].partition("\n### ")[0]
    left = re.search(r"Lessons (\d+) and (\d+) are left", semester)
    taken = tables.LINKED.findall(semester)
    assert taken == [l.name for l in LESSONS if parts.number(l.name) not in left.groups()]


GUIDE = """| [00](00_toy.ipynb), [00](00_toy.ipynb) | Σ |
<!-- times, by make render -->
old
<!-- end -->
"""


def test_the_guide_draws_from_lessons():
    head = "# 00 · Toy\n\n**Time:** about 40 minutes\n\n**You need:** a pen\n\nMore."
    code = new_code_cell("# takes about 1 min\ny = 2")
    toy = new_notebook(cells=[new_markdown_cell(head), code])
    page = tables.teaching(GUIDE, {"00_toy": toy})
    for drawn in (
        "| [00](00_toy.ipynb), [00](00_toy.ipynb) | 80 |",
        "| [00 · Toy](00_toy.ipynb) | 40 | 60 s | a pen |",
    ):
        assert drawn in page, drawn
    assert "old" not in page and tables.teaching(page, {"00_toy": toy}) == page
    with pytest.raises(ValueError, match=r"00: expected .*Time:.*, got none"):
        tables.teaching(GUIDE, {"00_toy": new_notebook(cells=[new_markdown_cell("# 00")])})
