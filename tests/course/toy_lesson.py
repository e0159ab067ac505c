"""A lesson small enough for tests of what runs, stores and shows lessons."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cnnlab.course import render

GITHUB = "https://github.com/owner/name"
SETUP = {"tags": ["setup"]}
PLOT = """
from cnnlab.plots import charts
charts.filters([[[1.0, -1.0], [0.5, 0.0]]], title='Two "filters" & more');
"""


def toy(*sources: str, text: str = "In this lesson we have seen little.") -> NotebookNode:
    """A small lesson whose code cells, after the setup cell, are `sources`."""
    setup = new_code_cell(render.setup_source(None, []), metadata=SETUP)
    code = [new_code_cell(source) for source in sources]
    title = new_markdown_cell("# 00 · Toy\n\nSee *how* it\nworks.\n\nMore.")
    return new_notebook(cells=[title, setup, *code, new_markdown_cell(text)])


def write(folder: Path, name: str, nb: NotebookNode) -> Path:
    """Write a lesson in canonical form to a folder; return its path."""
    path = folder / f"{name}.ipynb"
    nbformat.write(render.canonical(nb), path)
    return path
