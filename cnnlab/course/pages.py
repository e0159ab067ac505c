"""The course as a book of web pages that need no network: Sphinx builds it from the notebooks.

What notebooks lack for a page (alternative texts where myst-nb looks for them, folded cells,
targets of links) is added while Sphinx reads them, so the book's source has them as they are.
"""

import base64
import html
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from PIL import Image

from cnnlab.course import parts
from cnnlab.course.execute import execute
from cnnlab.course.render import BADGE, goal, plural, report, title
from cnnlab.course.results import Table, recorded, table_text
from cnnlab.runtime.files import replacing

if TYPE_CHECKING:
    from sphinx.application import Sphinx

COURSE = "Parallelizing a convolutional neural network"
HERE = Path(__file__).parent
SHOWN_DPI = 100  # of a figure that is shown dot for dot: Matplotlib's default
QUOTED = re.compile(r'\]\((\w+)\.ipynb "([^"\n]+)"\)')  # [cell](05_one_core.ipynb "step by step")
GUESS = re.compile(r"^[\w, ]+ = \.\.\.", re.MULTILINE)
ELSEWHERE = """:::{note}
:class: elsewhere
The figures and times on this page were measured elsewhere. `make course` replaces them with those
of your machine, one lesson after the other.
:::"""
SPEEDUPS = "Medians, with their 95 % confidence intervals and the number n of samples."


def settings(address: str | None) -> dict:
    """The configuration of Sphinx, for a course with that public address, if it has one."""
    mathjax = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
    given = tomllib.loads((HERE / "book.toml").read_text(encoding="utf-8"))
    given["html_static_path"] = [f"{mathjax}/static", str(HERE / "book.css"), str(HERE / "book.js")]
    if address:
        given["html_theme_options"] |= {
            "repository_url": address,
            "repository_branch": "main",
            "path_to_docs": "notebooks",
            "use_repository_button": True,
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        }
    return given


def setup(app: "Sphinx") -> dict[str, bool]:
    """Have Sphinx read notebooks as `shown` makes them, know CUDA C, and write only to the book."""
    from ipython_pygments_lexers import IPython3Lexer
    from pygments.lexer import bygroups, using
    from pygments.lexers import CppLexer
    from pygments.token import Operator, Text

    cuda = r"(?s)(%%(?:cuda|opencl))([^\n]*\n)(.*)", bygroups(Operator, Text, using(CppLexer))
    rules = {**IPython3Lexer.tokens, "root": [cuda, *IPython3Lexer.tokens["root"]]}
    app.add_lexer("cnnlab", type("CourseLexer", (IPython3Lexer,), {"tokens": rules}))
    app.connect("source-read", read)
    app.connect("builder-inited", keep_together, priority=900)  # after myst-nb's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_together(app: "Sphinx") -> None:
    """Have myst-nb write its copies of the notebooks into the book, not beside its folder."""
    outputs = str(Path(app.doctreedir) / "outputs")
    app.env.mystnb_config = app.env.mystnb_config.copy(output_folder=outputs)


def read(app: "Sphinx", name: str, content: list[str]) -> None:
    """Replace what Sphinx has read of a page by what it shall show."""
    if Path(app.env.doc2path(name)).suffix == ".ipynb":
        nb = nbformat.reads(content[0], as_version=4)
        content[0] = nbformat.writes(shown(nb, name))
    else:
        folder = Path(app.srcdir)
        content[0] = QUOTED.sub(lambda link: f"]({cell_link(folder, *link.groups())})", content[0])


def cell_link(folder: Path, name: str, quotation: str) -> str:
    """Where a link to the code cell that holds a quotation leads; if it is gone, to its lesson."""
    file = folder / f"{name}.ipynb"
    cells = nbformat.read(file, as_version=4).cells if file.is_file() else []
    ids = [cell.id for cell in cells if cell.cell_type == "code" and quotation in cell.source]
    return f"#{name}-{ids[0]}" if ids else file.name


# --- a notebook as a page -----------------------------------------------------------------------


def shown(nb: NotebookNode, name: str) -> NotebookNode:
    """A notebook as the book shows it.

    It says where it was measured, and has no Colab badge, which comes from the network. Each code
    cell can be linked to.
    """
    note = ELSEWHERE if nb.metadata.get("measured", "elsewhere") == "elsewhere" else ""
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": "cnnlab"}
    cells = []
    for number, cell in enumerate(nb.cells):
        if cell.cell_type == "code":
            cells.append(new_markdown_cell(f"({name}-{cell.id})="))
            fold(cell)
            for output in cell.outputs:
                if png := output.get("data", {}).get("image/png"):
                    alt = output.metadata.get("image/png", {}).get("alt", "")
                    output.data = {"text/html": figure(png, alt)}  # myst-nb: one alt for a cell
        elif number == 0:
            lines = [line for line in cell.source.split("\n") if not line.startswith(BADGE)]
            cell.source = "\n".join([lines[0], "", note, *lines[1:]])
        cells.append(cell)
    nb.cells = cells
    return nb


def fold(cell: NotebookNode) -> None:
    """Fold away the source of a setup cell, and of one that only waits for guesses."""
    tags = cell.metadata.get("tags", [])
    guess = bool(GUESS.search(cell.source)) and not cell.outputs
    if guess or "setup" in tags:
        prompt = "Your guess" if guess else "Setup"
        cell.metadata["tags"] = [*tags, "hide-input"]
        cell.metadata["mystnb"] = {"code_prompt_show": prompt, "code_prompt_hide": prompt}


def figure(png: str, alt: str) -> str:
    """The HTML of a PNG image in base64, as wide as its dots are by the density that it states."""
    image = Image.open(io.BytesIO(base64.b64decode(png)))
    width = round(image.width * SHOWN_DPI / image.info.get("dpi", (SHOWN_DPI,))[0])
    source = f"data:image/png;base64,{png}"
    return f'<img class="plot" src="{source}" width="{width}" alt="{html.escape(alt)}">'


# --- the book -----------------------------------------------------------------------------------


class Book:
    """The pages of the notebooks in a folder, in `build/course`; their source in `build/book`."""

    def __init__(self, notebooks: Path, build: Path):
        self.source, self.folder = build / "book", build / "course"
        self.index = self.folder / "index.html"
        for folder in (self.source, self.folder):
            shutil.rmtree(folder, ignore_errors=True)
        (self.source / "first").mkdir(parents=True)
        self.lessons = {}
        for path in sorted(notebooks.glob("*.ipynb")):
            self.put(path.stem, nbformat.read(path, as_version=4))
        self.texts = [shutil.copy(file, self.source) for file in sorted(notebooks.glob("*.md"))]
        self.write_index([])

    def put(self, name: str, nb: NotebookNode, measured: str = "elsewhere") -> None:
        """Take a lesson into the book, measured "elsewhere" or "here", or "failed" here."""
        nb.metadata["measured"] = measured
        self.lessons[name] = nb
        with replacing(self.source / f"{name}.ipynb") as file:
            file.write(nbformat.writes(nb).encode())

    def build(self) -> str:
        """Build what has changed, in a process that then ends; return the warnings of Sphinx.

        Raises RuntimeError with what Sphinx says if it cannot.
        """
        command = [sys.executable, "-m", "cnnlab.course.pages", str(self.source), str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the pages could not be built:\n{done.stderr.strip()}")
        return done.stderr

    def write_index(self, tables: list[Table]) -> None:
        """Write the first page: a card for each lesson, and tables of measured speedups."""
        shelves: dict[str, list[str]] = {}
        for name in self.lessons:
            shelves.setdefault(parts.part(name), []).append(name)
        lines = [f"# {COURSE}", "", Path(__file__).with_name("welcome.md").read_text("utf-8")]
        for part, names in shelves.items():
            lines += [f"## {part}", "", "::::{grid} 1 2 3 3", ":gutter: 3", ""]
            lines += [*(line for name in names for line in self.card(name)), "::::", ""]
        lines += ["## Measured speedups", "", SPEEDUPS, ""] if tables else []
        for heading, rows in tables:
            table = [("strategy", "median time", "speedup"), ("---", "--:", "--:"), *rows]
            lines += [f"**{heading}**", "", *(f"| {' | '.join(row)} |" for row in table), ""]
        beside = [Path(file).stem for file in self.texts]
        for caption, names in (shelves | {"Beside the lessons": beside}).items():
            lines += ["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""]
        (self.source / "index.md").write_text("\n".join(lines), encoding="utf-8")

    def card(self, name: str) -> list[str]:
        """The lines of a lesson's card: its title, its goal, and its first figure."""
        nb = self.lessons[name]
        lines = [f":::{{grid-item-card}} {title(nb)}", f":link: {name}", ":link-type: doc"]
        outputs = (output for cell in nb.cells for output in cell.get("outputs", []))
        first = next((o for o in outputs if "image/png" in o.get("data", {})), None)
        if first:
            image = self.source / "first" / f"{name}.png"
            image.write_bytes(base64.b64decode(first.data["image/png"]))
            alt = " ".join(first.metadata.get("image/png", {}).get("alt", "").split())
            lines += [f":img-top: first/{image.name}", f":img-alt: {alt}"]
        failed = ["**This lesson failed.**", ""] if nb.metadata["measured"] == "failed" else []
        return [*lines, "", *failed, goal(nb), ":::", ""]


def run(wanted: list[str], notebooks: Path, build: Path) -> int:
    """Run lessons, whose pages then replace those that are stored; return the exit status.

    The book of all stored lessons is there at once. Each page is replaced between two lessons, when
    nothing is measured. At the end, the measured speedups are printed.
    """
    paths = parts.find_lessons(wanted, notebooks)
    book = Book(notebooks, build)
    where = f"Pages to browse: {book.index}"
    print(f"Building the pages of {plural(len(book.lessons))} as they are stored", flush=True)
    book.build()
    print(f"{where}\n")
    print(f"Running {plural(len(paths))} on this machine; each then replaces its page", flush=True)
    results, failures = book.source / "results", {}
    for path in paths:
        nb = nbformat.read(path, as_version=4)
        error = execute(nb, path, results / path.stem, sharp=True)
        failures[path.stem] = [error] if error else []
        book.put(path.stem, nb, "failed" if error else "here")
        if path == paths[-1]:
            book.write_index(recorded(results))
        book.build()
    for table in recorded(results):
        print(f"\n{table_text(table)}")
    print(f"\n{where}")
    return report(failures)


def build(source: Path, folder: Path) -> int:
    """Have Sphinx build a book from its source into a folder; return its exit status."""
    from sphinx.application import Sphinx

    how = {"confoverrides": settings(parts.repository()), "parallel": os.cpu_count() or 1}
    app = Sphinx(source, None, folder, source / ".doctrees", "html", status=None, **how)
    app.build()
    return app.statuscode


if __name__ == "__main__":
    sys.exit(build(*map(Path, sys.argv[1:])))
