"""The course as web pages that need no network: one for each lesson, an index, and a search."""

import base64
import io
import json
import re
import shutil
from collections import Counter
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import DictLoader, Environment, FileSystemLoader, pass_context
from jinja2.runtime import Context
from latex2mathml import exceptions as tex_errors
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from PIL import Image

from cnnlab.course import parts, teaching
from cnnlab.course.lesson import BADGE, goal, title
from cnnlab.course.results import Table

COURSE = "Parallelizing a CNN"
SITE = Path(__file__).parent / "site"  # the frame of a page, its looks, and its script
# A notebook's cells. The frame is around them, and neither loads anything from the network.
CELLS = """\
{% extends 'lab/base.html.j2' %}
{% block data_png %}{% set png = output.data['image/png'] %}
<div class="jp-RenderedImage jp-OutputArea-output">
<img src="data:image/png;base64,{{ png }}" width="{{ png | width_in_css }}"
  alt="{{ (output | get_metadata('alt', 'image/png') or 'A figure') | escape_html }}">
</div>{% endblock %}
"""

SIBLING = re.compile(r"^(\w+)\.(?:ipynb|md)(#.*)?$")  # a page beside this one
HEADING = re.compile(r'<h([1-6]) id="([^"]*)">(.*?)</h\1>', re.DOTALL)
UNSAID = re.compile(r"<(details|style|script)\b.*?</\1>|<[^>]+>", re.DOTALL)  # tags, answers
SHOWN_DPI = 100  # of a figure that is shown dot for dot: Matplotlib's default
TEX_ERRORS = tuple(error for error in vars(tex_errors).values() if isinstance(error, type))


def anchor(heading: str) -> str:
    """The name by which links find a heading, made as on GitHub: "amdahls-law"."""
    plain = unescape(re.sub(r"<[^>]+>", "", heading)).strip().lower()
    return re.sub(r"[^\w -]", "", plain).replace(" ", "-")


def mathml(tex: str, display: str) -> str:
    """A formula as MathML, or as its TeX source if the converter cannot read it."""
    try:
        return convert(re.sub(r"\{(aligned|split)\}", "{align*}", tex), display=display)
    except TEX_ERRORS:
        return f"<code>{escape(tex)}</code>"


class OfflineRenderer(IPythonRenderer):
    """Markdown with formulas as MathML, and links between notebooks as links between pages."""

    def inline_math(self, body: str) -> str:
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, SIBLING.sub(r"\1.html\2", url), title)

    def block_html(self, html: str) -> str:
        """HTML as it stands: to look for images in it would close what a later block closes."""
        return super().block_html(html) if "<img" in html else html

    def heading(self, text: str, level: int, **attributes: Any) -> str:
        """A heading that links can name."""
        return f'<h{level} id="{anchor(text)}">{text}</h{level}>\n'


def width_in_css(png: str) -> int:
    """The width of a PNG image in CSS pixels, from base64: its dots, by the density it states."""
    image = Image.open(io.BytesIO(base64.b64decode(png)))
    dots_per_inch = image.info.get("dpi", (SHOWN_DPI,))[0]
    return round(image.width * SHOWN_DPI / dots_per_inch)


class LessonExporter(HTMLExporter):
    """A notebook's cells as HTML."""

    def __init__(self) -> None:
        super().__init__(
            template_file="cells.html.j2",
            extra_loaders=[DictLoader({"cells.html.j2": CELLS})],
            # the HTML to clean is that of highlighted code
            filters={"width_in_css": width_in_css, "clean_html": lambda html: html},
            exclude_input_prompt=True,
            exclude_output_prompt=True,
        )

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        """Markdown as HTML, without the Colab badge, which is loaded from the network."""
        renderer = OfflineRenderer(
            escape=False,
            embed_images=True,
            path=context["resources"]["metadata"]["path"],
            attachments=context["cell"].get("attachments"),
            exclude_anchor_links=True,
        )
        source = "\n".join(line for line in source.split("\n") if not line.startswith(BADGE))
        return MarkdownWithMath(renderer=renderer).render(source)


class Section(NamedTuple):
    """A heading of a page, and what is below it up to the next one, as plain text."""

    level: int
    anchor: str
    heading: str
    text: str


def plain(html: str) -> str:
    """The text of HTML in one line, without answers that are folded away."""
    return " ".join(unescape(UNSAID.sub("", html)).split())


def sections(body: str) -> tuple[str, list[Section]]:
    """The HTML with a link at each heading, all of them different, and its sections in order."""
    before, *pieces = HEADING.split(body)
    linked, found, seen = [before], [], Counter(("lessons", "contents", "scheme"))  # the frame's
    for level, name, heading, rest in zip(*(pieces[i::4] for i in range(4)), strict=True):
        unique = f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1
        link = f'<a class="anchor" href="#{unique}" aria-label="Link to this heading">#</a>'
        linked += [f'<h{level} id="{unique}">{heading}{link}</h{level}>', rest]
        found.append(Section(int(level), unique, plain(heading), plain(rest)))
    return "".join(linked), found


def first_plot(nb: NotebookNode) -> dict[str, str]:
    """The first PNG image among the outputs of a notebook, in base64, and its description."""
    outputs = (output for cell in nb.cells for output in cell.get("outputs", []))
    for output in outputs:
        if png := output.get("data", {}).get("image/png"):
            return {"plot": png, "alt": output.metadata.get("image/png", {}).get("alt", "A figure")}
    return {}


def write(
    lessons: dict[str, NotebookNode],
    failed: set[str],
    tables: list[Table],
    notebooks: Path,
    folder: Path,
) -> None:
    """Write a page for each executed lesson, one for each text beside them, and `index.html`.

    Parameters
    ----------
    lessons : the executed notebooks by name, in order
    failed : the names of those that stopped with an error
    tables : measured speedups, from `cnnlab.course.results.recorded`
    notebooks : the folder of the notebooks, their images, and the texts beside them
    folder : the folder of the pages, where a lesson's notebook is offered for download
    """
    exporter, names, searched = LessonExporter(), list(lessons), []
    texts = {file.stem: file.read_text(encoding="utf-8") for file in notebooks.glob("*.md")}
    beside = {
        name: new_notebook(cells=[new_markdown_cell(teaching.filled(text, notebooks, lessons))])
        for name, text in sorted(texts.items())
    }
    cards: dict[str, list[dict[str, Any]]] = {}
    for name, nb in lessons.items():
        card = {"name": name, "title": title(nb), "goal": goal(nb), "failed": name in failed}
        cards.setdefault(parts.title_of(name), []).append(card | first_plot(nb))
    extra = [{"name": name, "title": title(nb)} for name, nb in beside.items()]
    frame = Environment(loader=FileSystemLoader(SITE), autoescape=True, trim_blocks=True)
    frame.filters["anchor"] = anchor
    shelves = [*cards.items(), *([("Beside the lessons", extra)] if extra else [])]

    def page(name: str, heading: str, body: str, **links: str | None) -> None:
        body, found = sections(body)
        searched.extend({"page": name, "title": heading} | s._asdict() for s in found)
        contents = [section for section in found if section.level in (2, 3)]
        told = {"name": name, "title": heading, "body": body, "contents": contents, **links}
        text = frame.get_template("page.html").render(told, parts=shelves, course=COURSE)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")

    for i, (name, nb) in enumerate(lessons.items()):
        body, _ = exporter.from_notebook_node(nb, {"metadata": {"path": str(notebooks)}})
        around = {"before": names[i - 1] if i else None, "after": "".join(names[i + 1 : i + 2])}
        page(name, title(nb), body, notebook=f"{name}.ipynb", **around)
    for name, nb in beside.items():
        page(name, title(nb), exporter.from_notebook_node(nb)[0])
    index = json.dumps(searched, ensure_ascii=False, indent=0)  # of all pages but the next
    (folder / "search.js").write_text(f"const SECTIONS = {index};\n", encoding="utf-8")
    body = frame.get_template("index.html").render(parts=cards.items(), tables=tables)
    page("index", COURSE, body)
    for file in ("course.css", "course.js"):
        shutil.copy(SITE / file, folder)
