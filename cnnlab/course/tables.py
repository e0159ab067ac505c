"""Tables that `make render` and `make stamp` write into the pages beside the lessons.

Each lies between two comments, such as `<!-- machines, by make render -->` and `<!-- end -->`.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from cnnlab.course import parts, render
from cnnlab.distributed import METHODS
from cnnlab.distributed.compressors import COMPRESSORS
from cnnlab.measure.bench import MEASUREMENTS
from cnnlab.measure.timing import digits, in_words
from cnnlab.runtime.files import replacing
from cnnlab.training import OPTIMIZERS

LISTS = {"--ranks": METHODS, "--compress": COMPRESSORS, "--optimizer": OPTIMIZERS}
STRATEGIES = "loops", "vector", "threads"
# In the guide: an entry, and a row that adds up the minutes of the lessons that it links to.
ENTRY = re.compile(r"^(### \[[^\]]*\]\((\w+)\.ipynb\)\n)(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
SUM = re.compile(r"^(\|.*\]\(\w+\.ipynb\).*\|) (?:Σ|\d+) \|$", re.MULTILINE)
LINKED = re.compile(r"\]\((\w+)\.ipynb\)")


def outdated(root: Path) -> dict[Path, str]:
    """The files of a checkout whose tables are not up to date, with the text that they should have.

    Raises ValueError if the comments around a table are missing.
    """
    notebooks = root / "notebooks"
    written = {
        root / "README.md": readme,
        notebooks / "teaching.md": functools.partial(teaching, notebooks=notebooks),
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
    """methods.md with a row for each entry of METHODS, COMPRESSORS and OPTIMIZERS, and no other.

    Rows that somebody has written stay; a new entry gets one with its summary.
    """
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


# --- the guide for whoever teaches --------------------------------------------------------------


def teaching(text: str, notebooks: Path, measurements: Path = MEASUREMENTS) -> str:
    """teaching.md with what it draws from the lessons in a folder and from recorded measurements.

    An entry is a heading that links to its lesson; what the lesson says of itself is written into
    it.
    """

    @functools.cache
    def stored(name: str) -> NotebookNode:
        path = notebooks / f"{name}.ipynb"
        return nbformat.read(path, as_version=4) if path.is_file() else new_notebook()

    def summed(row: re.Match) -> str:
        total = sum(minutes(stored(name)) for name in LINKED.findall(row[1]))
        return f"{row[1]} {total} |"

    names = [entry[2] for entry in ENTRY.finditer(text)]
    text = ENTRY.sub(lambda entry: entry[1] + with_lesson(entry[3], stored(entry[2])), text)
    text = filled(SUM.sub(summed, text), "times", times(names, stored))
    return filled(text, "machines", machines(measurements))


def in_head(nb: NotebookNode, pattern: str) -> str:
    """What a pattern matches in the first cell of a lesson; "" if nothing."""
    match = re.search(pattern, nb.cells[0].source if nb.cells else "", re.MULTILINE)
    return match[1].strip() if match else ""


def minutes(nb: NotebookNode) -> int:
    """The minutes that a lesson says it takes."""
    return int(in_head(nb, r"^\*\*Time:\*\* about (\d+)") or 0)


def with_lesson(entry: str, nb: NotebookNode) -> str:
    """An entry with what its lesson says of time, of what one needs, of outcomes, and asks."""
    needs = in_head(nb, r"^\*\*You need:\*\* (.+)")
    outcomes = in_head(nb, r"^\*\*Afterwards you can:?\*\*\n+((?:- .+\n?)+)")
    head = f"**{minutes(nb)} minutes.** **Before:** {needs}\n\n**Afterwards they can**"
    asked = "\n".join(f"{n}. {text}" for n, text in enumerate(questions(nb), start=1))
    return filled(filled(entry, "outcomes", f"{head}\n\n{outcomes}"), "questions", asked)


def questions(nb: NotebookNode) -> list[str]:
    """The questions at the end of a lesson."""
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    below = text.partition("## Three questions\n")[2].partition("\n#")[0]
    return re.findall(r"^\d\. (.+)", below, re.MULTILINE)


def times(names: list[str], stored: Callable[[str], NotebookNode]) -> str:
    """All lessons in a table: minutes, and what their slow cells took when they were stored."""
    rows = []
    for name in names:
        nb = stored(name)
        slow = render.noted_seconds(nb)
        link = f"[{render.title(nb)}]({name}.ipynb)"
        rows.append([link, str(minutes(nb)), f"about {slow} s" if slow else "none"])
    return table(["lesson", "minutes", "slow cells, on two cores"], rows)


def machines(folder: Path) -> str:
    """A table of the machines whose reports are in a folder: an epoch, and two speedups."""
    pairs = list(itertools.pairwise(STRATEGIES))
    columns = [f"`{name}`" for name in STRATEGIES] + [f"`{b}` over `{a}`" for a, b in pairs]
    rows = []
    for file in sorted(folder.glob("bench-*.json")):
        report = json.loads(file.read_text(encoding="utf-8"))
        here, results = report["machine"], {row["kernels"]: row for row in report["results"]}
        times = {name: row["seconds_per_epoch"] for name, row in results.items()}
        row = [here["cpu"], str(here["usable_cores"]), str(here["simd"]).partition(",")[0]]
        for name in STRATEGIES:
            interval = results[name]["seconds_interval"] if name in results else []
            row.append(" to ".join(map(in_words, interval)))
        for a, b in pairs:
            row.append(f"{digits(times[a] / times[b])} times" if {a, b} <= times.keys() else "")
        rows.append(row)
    return table(["machine", "cores", "vectors", *columns], rows)
