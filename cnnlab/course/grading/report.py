"""The pages of a class: one for all, and one for each student, which shows nobody else."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from cnnlab.course.grading.classroom import file_name
from cnnlab.course.grading.similar import alike
from cnnlab.runtime.files import replacing

SITE = Path(__file__).resolve().parents[1] / "site"
FREQUENT = 3  # wrong verdicts of an exercise that the class's page tells


def write(results: Sequence[dict], title: str, out: Path) -> None:
    """Write index.html and, in `students`, a page for each."""
    frame = Environment(loader=FileSystemLoader(SITE), autoescape=True, trim_blocks=True)
    pages = {"index.html": frame.get_template("grades.html").render(
        title=title, results=results, exercises=by_exercise(results), alike=alike(results),
        page=lambda student: f"students/{file_name(file_name(student))}.html",
    )}  # fmt: skip
    (out / "students").mkdir(exist_ok=True)
    for each in results:
        name = f"students/{file_name(each['student'])}.html"
        pages[name] = frame.get_template("grade.html").render(title=title, result=each)
    for name, text in pages.items():
        with replacing(out / name) as file:
            file.write(text.encode())
    for place in (out, out / "students"):
        shutil.copy(SITE / "course.css", place / "course.css")


def by_exercise(results: Sequence[dict]) -> list[dict]:
    """Each exercise: how many have all its points, some or none, and what most are told."""
    found: dict[tuple, list[dict]] = {}
    for result in results:
        for row in result["exercises"]:
            found.setdefault((row["lesson"], row["name"]), []).append(row)
    return [
        {
            "lesson": lesson,
            "name": name.replace("_", " "),
            "most": rows[0]["most"],
            "all": sum(row["points"] == row["most"] for row in rows),
            "some": sum(0 < row["points"] < row["most"] for row in rows),
            "none": sum(row["points"] == 0 for row in rows),
            "told": told(rows),
        }
        for (lesson, name), rows in found.items()
    ]


def told(rows: Sequence[dict]) -> list[tuple[str, int]]:
    """The most frequent verdicts of those who miss an exercise: alike but for numbers."""
    wrong = [row["verdict"] for row in rows if row["points"] < row["most"]]
    kinds = Counter("".join("#" if c.isdigit() else c for c in text) for text in wrong)
    first = {}
    for text in wrong:
        first.setdefault("".join("#" if c.isdigit() else c for c in text), text)
    return [(first[kind], n) for kind, n in kinds.most_common(FREQUENT)]
