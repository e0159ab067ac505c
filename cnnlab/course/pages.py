"""The course as web pages that need no network: one for each lesson, and an index."""

import re
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Template, pass_context
from jinja2.runtime import Context
from latex2mathml import exceptions as tex_errors
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from cnnlab.course import parts
from cnnlab.course.lesson import BADGE, goal, title
from cnnlab.course.results import Table

# JupyterLab's own look, without the scripts that it loads from the network.
LESSON_PAGE = """\
{% extends 'lab/index.html.j2' %}
{% block html_head_js %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
{% block html_head_css %}<style>
  main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
  nav { display: flex; justify-content: space-between; font: 0.9rem system-ui, sans-serif; }
  nav a { color: #0b63b0; text-decoration: none; }
  math[display=block] { margin: 1em 0; overflow-x: auto; }
</style>{% endblock %}
{% macro links() %}<nav>
  <span>{% if resources.before %}<a href="{{ resources.before }}.html">← back</a>{% endif %}</span>
  <a href="index.html">all lessons</a>
  <span>{% if resources.after %}<a href="{{ resources.after }}.html">next →</a>{% endif %}</span>
</nav>{% endmacro %}
{% block body_header %}{{ super() }}{{ links() }}{% endblock %}
{% block body_footer %}{{ links() }}{{ super() }}{% endblock %}
"""

INDEX_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parallelizing a CNN</title>
<style>
  :root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0b7285; }
  body { max-width: 58rem; margin: 0 auto; padding: 2rem 1rem 4rem;
         font: 1rem/1.5 system-ui, sans-serif; }
  h1 { margin-bottom: 0; }  h2 { margin-top: 2.5rem; color: var(--accent); }
  .lessons { display: grid; gap: 1rem;
             grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); }
  .lessons a { border: 1px solid var(--line); border-radius: 0.6rem; padding: 1rem;
               color: inherit; text-decoration: none; }
  .lessons a:hover { border-color: var(--accent); background: var(--soft); }
  .lessons img { width: 100%; height: 9rem; object-fit: contain; background: white;
                 border-radius: 0.3rem; }
  .lessons p { margin: 0.3rem 0 0; }  .failed { color: #c92a2a; }
  table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
  caption { text-align: left; font-weight: 600; }
  th, td { padding: 0.25rem 1.2rem 0.25rem 0; border-bottom: 1px solid var(--line);
           text-align: right; font-variant-numeric: tabular-nums; }
  th:first-child, td:first-child { text-align: left; }
</style>
</head>
<body>
<h1>Parallelizing a convolutional neural network</h1>
<p>Every lesson as it ran on this machine.</p>
{% for part, lessons in parts %}
<h2>{{ part }}</h2>
<div class="lessons">
{% for lesson in lessons %}
<a href="{{ lesson.name }}.html">
  {% if lesson.plot %}<img alt="" src="data:image/png;base64,{{ lesson.plot }}">{% endif %}
  <strong>{{ lesson.title }}</strong>
  {% if lesson.failed %}<strong class="failed">failed</strong>{% endif %}
  <p>{{ lesson.goal }}</p>
</a>
{% endfor %}
</div>
{% endfor %}
{% if tables %}
<h2>Measured speedups</h2>
<p>Medians, with their 95 % confidence intervals and the number n of samples.</p>
{% endif %}
{% for name, rows in tables %}
<table>
<caption>{{ name }}</caption>
<tr><th>strategy</th><th>median time</th><th>speedup</th></tr>
{% for row in rows %}
<tr>{% for text in row %}<td>{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</table>
{% endfor %}
</body>
</html>
"""


TEX_ERRORS = tuple(error for error in vars(tex_errors).values() if isinstance(error, type))


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
        if url.endswith(".ipynb") and "/" not in url:
            url = url.removesuffix(".ipynb") + ".html"
        return super().link(text, url, title)


class LessonExporter(HTMLExporter):
    """A notebook as one self-contained page."""

    def __init__(self) -> None:
        super().__init__(
            template_file="lesson.html.j2",
            extra_loaders=[DictLoader({"lesson.html.j2": LESSON_PAGE})],
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


def first_plot(nb: NotebookNode) -> str | None:
    """The first PNG image among the outputs of a notebook, in base64, or None."""
    outputs = (output for cell in nb.cells for output in cell.get("outputs", []))
    return next((o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})), None)


def write(
    lessons: dict[str, NotebookNode],
    failed: set[str],
    tables: list[Table],
    notebooks: Path,
    folder: Path,
) -> None:
    """Write a page for each executed lesson, and `index.html`.

    Parameters
    ----------
    lessons : the executed notebooks by name, in order
    failed : the names of those that stopped with an error
    tables : measured speedups, from `cnnlab.course.results.recorded`
    notebooks : the folder of the notebooks and of the images that they show
    folder : the folder of the pages
    """
    exporter, names = LessonExporter(), list(lessons)
    for i, (name, nb) in enumerate(lessons.items()):
        neighbours = {
            "before": names[i - 1] if i else None,
            "after": names[i + 1] if i + 1 < len(names) else None,
            "metadata": {"name": title(nb), "path": str(notebooks)},
        }
        page, _ = exporter.from_notebook_node(nb, neighbours)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")

    cards: dict[str, list[dict[str, Any]]] = {}
    for name, nb in lessons.items():
        card = {"name": name, "title": title(nb), "goal": goal(nb), "plot": first_plot(nb)}
        part = cards.setdefault(parts.title_of(name), [])
        part.append(card | {"failed": name in failed})
    index = Template(INDEX_PAGE, autoescape=True).render(parts=cards.items(), tables=tables)
    (folder / "index.html").write_text(index, encoding="utf-8")
