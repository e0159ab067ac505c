"""The parts of the course and their lessons, as listed in notebooks/lessons.toml."""

import functools
import tomllib
from pathlib import Path
from typing import NamedTuple

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
BEGIN, END = "<!-- lessons.toml, by `make render` -->\n", "<!-- end of the lessons -->\n"


class Lesson(NamedTuple):
    """One lesson: its notebook without the suffix, its title, and its subject in one line."""

    name: str
    title: str
    subject: str

    @property
    def number(self) -> str:
        """The number that its name begins with: two digits, and a letter where one came between."""
        return number(self.name)

    @property
    def heading(self) -> str:
        """The first line of the notebook."""
        return f"# {self.number} · {self.title}"


class Part(NamedTuple):
    """A part of the course. The names of its lessons begin with `digit`."""

    digit: str
    title: str
    lessons: tuple[Lesson, ...]


def number(name: str) -> str:
    """The number of the lesson of that name: all before the first underscore."""
    return name.partition("_")[0]


@functools.cache
def parts(folder: Path = NOTEBOOKS) -> tuple[Part, ...]:
    """The parts in lessons.toml of a folder, in order; none if there is no such file."""
    file = folder / "lessons.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return tuple(
        Part(
            next(iter(lessons))[0], title, tuple(Lesson(name, *of) for name, of in lessons.items())
        )
        for title, lessons in listed.items()
    )


def title_of(name: str) -> str:
    """The title of a lesson's part, by its number; "More" if there is none."""
    return next((part.title for part in parts() if part.digit == name[0]), "More")


def heading(name: str) -> str | None:
    """The heading of a lesson; None if it is not listed."""
    lessons = (lesson for part in parts() for lesson in part.lessons)
    return next((lesson.heading for lesson in lessons if lesson.name == name), None)


def table() -> str:
    """The table of the lessons in README.md."""
    lines = ["| | | | |", "| --- | --- | --- | --- |"]
    for part in parts():
        for lesson in part.lessons:
            of = part.title if lesson is part.lessons[0] else ""
            link = f"[{lesson.title}](notebooks/{lesson.name}.ipynb)"
            lines.append(f"| {of} | {lesson.number} | {link} | {lesson.subject} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The text of README.md with the table between its marks; ValueError if they are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"README.md: expected the lines {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{table()}\n{end}{after}"
