import json
import re
import tomllib
from pathlib import Path

import pytest

from cnnlab.course import parts

ROOT = Path(__file__).resolve().parents[2]
LESSONS = [lesson for part in parts.parts() for lesson in part.lessons]


def notebook(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))


def text(cell):
    return "".join(cell["source"])


def test_the_lessons_listed_are_the_notebooks_in_their_order():
    files = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert [lesson.name for lesson in LESSONS] == [file.stem for file in files]


def test_the_lessons_of_a_part_share_their_first_digit_and_only_they():
    digits = [part.digit for part in parts.parts()]
    assert digits == sorted(set(digits))
    for part in parts.parts():
        for lesson in part.lessons:
            assert re.fullmatch(rf"{part.digit}\d[a-z]?_[a-z_0-9]+", lesson.name)


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.name for lesson in LESSONS])
def test_a_notebook_bears_the_title_listed(lesson):
    assert text(notebook(lesson.name)["cells"][0]).split("\n")[0] == lesson.heading


def test_the_readme_shows_the_table_of_the_lessons():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert parts.with_table(readme) == readme, f"make render, or by hand:\n{parts.table()}"
    assert readme.count(".ipynb)") == len(LESSONS)


def test_contributing_tells_the_numbers_of_the_parts():
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert ", ".join(f"{part.digit}x {part.title}" for part in parts.parts()) in page


def test_ruff_excuses_unknown_names_in_just_the_parts_that_compile_cuda():
    """The cell magic %%cuda makes names that ruff cannot see."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rules = project["tool"]["ruff"]["lint"]["per-file-ignores"]
    excused = {pattern for pattern, codes in rules.items() if "F821" in codes}
    compiling = {
        f"notebooks/{lesson.name[0]}*.ipynb"
        for lesson in LESSONS
        if any(text(cell).startswith("%%cuda") for cell in notebook(lesson.name)["cells"])
    }
    assert excused == compiling


def test_the_table_takes_the_place_between_its_marks():
    page = f"before\n{parts.BEGIN}old\n{parts.END}after\n"
    once = parts.with_table(page)
    assert once.startswith("before\n") and once.endswith("after\n") and "old" not in once
    assert parts.with_table(once) == once and once.count("| Threads | 10 | [Threads](") == 1
    for missing in (parts.BEGIN, parts.END):
        with pytest.raises(ValueError, match=r"README\.md: expected the lines"):
            parts.with_table(page.replace(missing, ""))


def test_a_folder_without_a_list_has_no_parts(tmp_path):
    assert parts.parts(tmp_path) == ()
    assert parts.title_of("00_not_listed") == "The network" and parts.title_of("90_x") == "More"
    assert parts.heading("00_not_listed") is None
