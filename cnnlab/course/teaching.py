"""The guide for whoever teaches: what its page draws from the lessons and from recorded runs.

In notebooks/teaching.md, an entry is a heading that links to its lesson. Below it stand, by hand,
what students believe and, as a numbered list, answers to the lesson's questions. A link with a
quotation, `[cell](05_one_core.ipynb "step by step")`, leads to the code cell that holds it. What is
not there, because somebody has changed a lesson, is left out: a page is better than none.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from cnnlab.course import durations, shape
from cnnlab.course.lesson import title
from cnnlab.measure.bench import MEASUREMENTS
from cnnlab.measure.timing import digits, in_words

ENTRY = re.compile(r"^(### \[[^\]]*\]\((\w+)\.ipynb\)\n)(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r'\]\((\w+)\.ipynb "([^"\n]+)"\)')
LINKED = re.compile(r"\]\((\w+)\.ipynb\)")
LESSONS, MACHINES, SUM = "<!-- the lessons -->", "<!-- the machines -->", "Σ"
FOLDED = "<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>\n"
RATIO = re.compile(r"\d( ?%| times\b)")  # in the title of a figure: it says what was measured
INTERVAL = re.compile(r".+ (?:is|no difference) .+\([^()]+ to [^()]+\)\.?")
EMULATED = {"%load_ext cnnlab.cuda", "so the emulator runs"}  # a lesson that ran without a GPU


class Head(NamedTuple):
    """What the head of a lesson says: its minutes, and two pieces of markdown."""

    minutes: int
    needs: str
    outcomes: str


def filled(text: str, notebooks: Path, executed: Mapping[str, NotebookNode]) -> str:
    """A text beside the lessons, with all that it draws from them and links to their cells.

    `notebooks` is the folder of the stored lessons; `executed` are those that have just run, by
    name, all of them or some. A text without marks stays as it is.
    """

    @functools.cache
    def stored(name: str) -> NotebookNode:
        path = notebooks / f"{name}.ipynb"
        return nbformat.read(path, as_version=4) if path.is_file() else new_notebook()

    def summed(line: str) -> str:
        total = sum(head(stored(name)).minutes for name in LINKED.findall(line))
        return line.replace(f"| {SUM} |", f"| {total} |")

    def drawn(found: re.Match) -> str:
        nb = stored(found[2])
        return found[1] + (entry(nb, found[3]) if nb.cells else found[3])

    names = [found[2] for found in ENTRY.finditer(text) if stored(found[2]).cells]
    text = "\n".join(map(summed, text.split("\n")))
    text = ENTRY.sub(drawn, text)
    text = QUOTED.sub(lambda found: f"]({address(stored(found[1]), *found.groups())})", text)
    if LESSONS in text:
        text = text.replace(LESSONS, table(names, stored, executed))
    return text.replace(MACHINES, machines()) if MACHINES in text else text


def head(nb: NotebookNode) -> Head:
    """What the first cell of a lesson says of time, of what one needs, and of outcomes."""
    source = nb.cells[0].source if nb.cells else ""

    def said(pattern: str) -> str:
        found = re.search(pattern, source, re.MULTILINE)
        return found[1] if found else ""

    return Head(
        int(said(r"^\*\*Time:\*\* about (\d+)") or 0),
        said(r"^\*\*You need:\*\* (.+)"),
        said(r"^\*\*Afterwards you can:?\*\*\n+((?:- .+\n?)+)").strip(),
    )


def questions(nb: NotebookNode) -> list[str]:
    """The questions at the end of a lesson."""
    text = "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    below = text.partition(f"{shape.QUESTIONS}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d\. (.+)", below, re.MULTILINE)


def measured(nb: NotebookNode) -> list[str]:
    """What the outputs of a lesson say of a ratio: sentences with an interval, titles of figures.

    What is virtual or from the emulator says so. A picture of a student's own accesses is left out.
    """
    found, emulated = [], EMULATED <= {word for word in EMULATED if word in str(nb.cells)}
    for output in (output for cell in nb.cells for output in cell.get("outputs", [])):
        found += sentences(output.get("text", ""))
        alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
        heading = alt.partition(". ")[0]
        if RATIO.search(heading) and "at fault" not in heading:
            worlds = {"virtual": "virtual" in alt, "on the emulator": emulated}
            said = [world for world, there in worlds.items() if there and world not in heading]
            found.append(heading + "".join(f" ({world})" for world in said))
    return list(dict.fromkeys(line.strip().rstrip(".") for line in found))


def sentences(text: str) -> Iterator[str]:
    """The lines of an output that end with an interval, each after the name above it, if any."""
    name = ""
    for line in text.split("\n"):
        if line.isidentifier():
            name = f"`{line}`: "
        elif INTERVAL.fullmatch(line):
            yield name + line


def entry(nb: NotebookNode, by_hand: str) -> str:
    """An entry of the guide: what the lesson says of itself around what was written by hand."""
    said, (beliefs, _, answers) = head(nb), by_hand.strip().partition("\n1. ")
    asked = "\n".join(f"{n}. {question}" for n, question in enumerate(questions(nb), start=1))
    runs = "\n".join(f"- {line}" for line in measured(nb))
    return "\n\n".join(
        [
            f"\n**{said.minutes} minutes.** **Before:** {said.needs}",
            f"**Afterwards they can**\n\n{said.outcomes}",
            f"**What students believe, and the cell that refutes it**\n\n{beliefs.strip()}",
            f"**At the end, ask**\n\n{asked}",
            FOLDED.format(summary="What a good answer says", text=f"1. {answers.strip()}"),
            *([FOLDED.format(summary="Measured on two cores", text=runs)] if runs else []),
            "",
        ]
    )


def cells_with(nb: NotebookNode, quotation: str) -> list[NotebookNode]:
    """The code cells of a lesson that hold a quotation: one, or a link to it leads astray."""
    return [cell for cell in nb.cells if cell.cell_type == "code" and quotation in cell.source]


def address(nb: NotebookNode, name: str, quotation: str) -> str:
    """Where a link to a cell leads, on a page or in JupyterLab; if it is gone, to its lesson."""
    found = cells_with(nb, quotation)
    return f"{name}.ipynb" + (f"#cell-id={found[0].id}" if found else "")


def table(
    names: list[str],
    stored: Callable[[str], NotebookNode],
    executed: Mapping[str, NotebookNode],
) -> str:
    """All lessons in a table: minutes, what their slow cells take, how long they have just run.

    What slow cells take is what rendering wrote into them, in coarse steps.
    """
    lines = ["| lesson | minutes | slow cells, on two cores | ran here in |", "| --- " * 4 + "|"]
    for name in names:
        nb, just = stored(name), executed.get(name, new_notebook())
        slow, ran = durations.noted(nb), sum(map(durations.seconds, just.cells))
        told = f"about {slow} s" if slow else "none", f"{ran:.0f} s" if ran else "–"
        row = [f"[{title(nb)}]({name}.ipynb)", str(head(nb).minutes), *told]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def machines(folder: Path = MEASUREMENTS) -> str:
    """A table of the machines whose reports are in a folder: an epoch, and two speedups."""
    ways = "loops", "vector", "threads"
    pairs = [("loops", "vector"), ("vector", "threads")]
    columns = [f"`{way}`" for way in ways] + [f"`{fast}` over `{slow}`" for slow, fast in pairs]
    lines = [f"| {' | '.join(['machine', 'cores', 'vectors', *columns])} |", "| --- " * 8 + "|"]
    for file in sorted(folder.glob("bench-*.json")):
        report = json.loads(file.read_text(encoding="utf-8"))
        here, rows = report["machine"], {row["kernels"]: row for row in report["results"]}
        row = [here["cpu"], str(here["usable_cores"]), str(here["simd"]).partition(",")[0]]
        for way in ways:
            row.append(
                " to ".join(map(in_words, rows[way]["seconds_interval"] if way in rows else []))
            )
        for slow, fast in pairs:
            there = slow in rows and fast in rows
            row.append(f"{times(rows[slow], rows[fast])} times" if there else "")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def times(slow: Mapping[str, float], fast: Mapping[str, float]) -> str:
    """How many times faster one row of a report is than another."""
    return digits(slow["seconds_per_epoch"] / fast["seconds_per_epoch"])
