"""Tables that `make render` and `make stamp` write into the pages beside the lessons.

Each lies between two comments, such as `<!-- times, by make render -->` and `<!-- end -->`.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from cnnlab.course import parts, render
from cnnlab.distributed import METHODS
from cnnlab.distributed.compressors import COMPRESSORS
from cnnlab.runtime.files import replacing
from cnnlab.training import OPTIMIZERS

LISTS = {"--ranks": METHODS, "--compress": COMPRESSORS, "--optimizer": OPTIMIZERS}
TIME = re.compile(r"^\*\*Time:\*\* about (\d+)", re.MULTILINE)
NEEDS = re.compile(r"^\*\*You need:\*\* (.+)", re.MULTILINE)
# In the guide: a row that adds up the minutes of the lessons that it links to.
SUM = re.compile(r"^(\|.*\]\(\w+\.ipynb\).*\|) (?:Σ|\d+) \|$", re.MULTILINE)
LINKED = re.compile(r"\]\((\w+)\.ipynb\)")


def outdated(root: Path) -> dict[Path, str]:
    """The files of a checkout with tables that are outdated, and the text that they should have."""
    notebooks = root / "notebooks"
    paths = sorted(notebooks.glob("*.ipynb"))
    lessons = {path.stem: nbformat.read(path, as_version=4) for path in paths}
    written = {
        root / "README.md": readme,
        notebooks / "teaching.md": functools.partial(teaching, lessons=lessons),
        notebooks / "methods.md": methods,
    }
    texts = {file: file.read_text(encoding="utf-8") for file in written}
    return {file: new for file, old in texts.items() if (new := written[file](old)) != old}


def write(root: Path) -> None:
    """Write the tables of a checkout anew."""
    for file, text in outdated(root).items():
        with replacing(file) as replaced:
            replaced.write(text.encode())


def filled(text: str, name: str, content: str) -> str:
    """The text with a content between the comments of that name; ValueError if there are none."""
    begin, end = f"<!-- {name}, by make render -->", "<!-- end -->"
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (begun and ended):
        raise ValueError(f"tables: expected the lines {begin!r} and {end!r}, got none")
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def readme(text: str) -> str:
    """README.md with its table of the lessons."""
    rows, last = [], ""
    for lesson in parts.lessons().values():
        link = f"[{lesson.title}](notebooks/{lesson.name}.ipynb)"
        part = lesson.part if lesson.part != last else ""
        rows.append([part, parts.number(lesson.name), link, lesson.subject])
        last = lesson.part
    return filled(text, "lessons", table([""] * 4, rows))


def methods(text: str, lists: Mapping[str, Mapping] = LISTS) -> str:
    """methods.md with the rows of these lists; a new one has its summary, written ones stay."""
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    for n, section in enumerate(sections):
        for option, entries in lists.items():
            if f"`{option}`" in section.partition("\n")[0]:
                sections[n] = with_rows(section, entries)
    return "".join(sections)


def with_rows(section: str, entries: Mapping) -> str:
    """A section whose table has the rows of these entries."""
    lines = section.split("\n")
    rows = [n for n, line in enumerate(lines) if re.match(r"\| `\w+", line)]
    named = {n: re.match(r"\| `(\w+)", lines[n])[1] for n in rows}
    empty = " |" * (lines[rows[0]].count(" |") - 2)
    new = entries.keys() - named.values()
    kept = [lines[n] for n in rows if named[n] in entries]
    kept += [f"| `{name}` | {entries[name].summary} |{empty}" for name in entries if name in new]
    return "\n".join([*lines[: rows[0]], *kept, *lines[rows[-1] + 1 :]])


def teaching(text: str, lessons: Mapping[str, NotebookNode]) -> str:
    """teaching.md with what lessons, by name, say of their times.

    A row of a schedule ends with the minutes of the lessons that it links to.
    """

    def summed(row: re.Match) -> str:
        minutes = [int(says(lessons[name], TIME)) for name in LINKED.findall(row[1])]
        return f"{row[1]} {sum(minutes)} |"

    rows = []
    for name, nb in lessons.items():
        slow = render.noted_seconds(nb)
        link = f"[{render.title(nb)}]({name}.ipynb)"
        rows.append([link, says(nb, TIME), f"{slow} s" if slow else "none", says(nb, NEEDS)])
    times = table(["lesson", "minutes", "slow cells, about", "before it"], rows)
    return filled(SUM.sub(summed, text), "times", times)


def says(nb: NotebookNode, pattern: re.Pattern) -> str:
    """What the first cell of a lesson says of its time, or of what one needs to know."""
    match = pattern.search(nb.cells[0].source)
    if not match:
        raise ValueError(f"{render.title(nb)}: expected {pattern.pattern!r}, got none")
    return match[1].strip()
