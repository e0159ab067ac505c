"""A lesson as a file: its stamped cells, its one canonical form, and what may not be in it."""

import ast
import copy
import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4
from packaging.requirements import Requirement

from cnnlab.course import parts

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cnnlab"
MAX_BYTES = 500_000
CLOSING = "In this lesson we have"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
COLAB = "https://colab.research.google.com/github"
SETUP = """\
# Setup: runs as is, in a clone of the course and on Colab.
import sys
from importlib.util import find_spec
from pathlib import Path

if Path("../cnnlab").is_dir():
    sys.path.insert(0, "..")  # in a clone, take the clone's cnnlab
if find_spec("cnnlab") is None:
    {install}
if find_spec("cnnlab"):
    import cnnlab

    print("cnnlab", cnnlab.__version__)"""
INSTALL = '%pip install --quiet "{package} @ git+{address}"'
NO_ADDRESS = (
    """print('Set Repository = "https://…" in pyproject.toml [project.urls]: make render')"""
)

# Absolute paths of two names or more, except what every Linux has, and object addresses.
MACHINE_PATH = re.compile(r"(?<![\w.:/<~])/(?!proc/|sys/|dev/)(?:[\w.+-]+/)+[\w.+-]*|site-packages")
MEMORY_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}", re.IGNORECASE)


def repository(pyproject: Path = ROOT / "pyproject.toml") -> str | None:
    """Return the public address of the course, or None while pyproject.toml names none."""
    urls = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"].get("urls", {})
    address = urls.get("Repository")
    if address is None:
        return None
    if not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+/?", address):
        raise ValueError(f"[project.urls] Repository: expected https://host/path, got {address!r}")
    return address.rstrip("/").removesuffix(".git")


def lowest(pyproject: Path = ROOT / "pyproject.toml") -> list[str]:
    """Return `name==version` for every lower bound that pyproject.toml declares."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for group in groups for text in group]
    return [
        f"{requirement.name}=={bound.version}"
        for requirement in requirements
        for bound in requirement.specifier
        if bound.operator == ">="
    ]


# --- stamped cells ------------------------------------------------------------------------------


def title_source(source: str, name: str, address: str | None) -> str:
    """The title cell: the heading that lessons.toml lists, and a Colab badge under it, or none.

    A lesson that is not listed keeps its heading. Colab opens notebooks from GitHub only, so
    another address gets no badge.
    """
    heading, *rest = source.strip().splitlines()
    heading = parts.heading(name.removesuffix(".ipynb")) or heading
    text = "\n".join(line for line in rest if not line.startswith(BADGE)).strip()
    badge = ""
    if address and address.startswith("https://github.com/"):
        owner_and_name = address.removeprefix("https://github.com/")
        badge = f"{BADGE}({COLAB}/{owner_and_name}/blob/main/notebooks/{name})"
    return "\n\n".join(part for part in (heading, badge, text) if part)


def setup_source(address: str | None, extras: list[str]) -> str:
    """Return the setup cell: import cnnlab, installing it first where it is missing."""
    package = "cnnlab" + (f"[{','.join(extras)}]" if extras else "")
    install = INSTALL.format(package=package, address=address) if address else NO_ADDRESS
    return SETUP.format(install=install)


def kernel_source(name: str) -> str:
    """Return the text of a function, such as `loops.conv_forward`, as it stands in cnnlab/kernels.

    What is not there, such as `ranks.schedules.ring`, is looked for below cnnlab;
    `conv.cu.conv_forward` is CUDA C with the cell magic that compiles it. Raises ValueError if
    there is no such module or function.
    """
    *module, function = name.split(".")
    if module[1:] == ["cu"]:
        return cuda_source(module[0], function)
    places = [PACKAGE.joinpath(*room, *module) for room in (["kernels"], [])]
    for path in (place.with_suffix(".py") for place in places if module):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"kernel: expected module.function below cnnlab, got {name!r}")


def cuda_source(file: str, kernel: str) -> str:
    """Return a cell that compiles a kernel of cnnlab/cuda, with its comment and what it calls."""
    path = (PACKAGE / "cuda" / file).with_suffix(".cu")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    pattern = rf'^(?://[^\n]*\n)*extern "C" __global__ void {re.escape(kernel)}\(.*?^}}'
    if found := re.search(pattern, text, re.MULTILINE | re.DOTALL):
        helpers = re.findall(r"^(__device__ \w+ (\w+)\(.*\n)", text, re.MULTILINE)
        used = [line for line, helper in helpers if f"{helper}(" in found[0]]
        return f"%%cuda {kernel}\n{''.join(used)}{found[0]}"
    raise ValueError(f"kernel: expected a kernel of cnnlab/cuda, got {file}.cu.{kernel}")


def stamp(nb: NotebookNode, name: str, address: str | None) -> NotebookNode:
    """Return a copy of the notebook with its title, setup and kernel cells written anew.

    The setup cell is the first code cell, tagged `setup`; its other tags name extras of cnnlab.
    A cell tagged `kernel:loops.conv_forward` shows that function, character for character.

    Raises
    ------
    ValueError
        if the first cell is not a title, the first code cell is not tagged `setup`, or a kernel
        does not exist.
    """
    nb = copy.deepcopy(nb)
    if not nb.cells or nb.cells[0].cell_type != "markdown" or not nb.cells[0].source[:2] == "# ":
        raise ValueError(f"{name}: the first cell must be markdown that starts with '# Title'")
    nb.cells[0].source = title_source(nb.cells[0].source, name, address)
    setup = next((cell for cell in nb.cells if cell.cell_type == "code"), None)
    if setup is None or "setup" not in setup.metadata.get("tags", []):
        raise ValueError(f"{name}: the first code cell must carry the tag 'setup'")
    setup.source = setup_source(address, [tag for tag in setup.metadata.tags if tag != "setup"])
    for cell in nb.cells:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("kernel:"):
                cell.source = kernel_source(tag.removeprefix("kernel:"))
    return nb


def title(nb: NotebookNode) -> str:
    """Return the lesson's title: the heading of its first cell."""
    source = nb.cells[0].source if nb.cells else ""
    return source.partition("\n")[0].removeprefix("# ").strip()


def goal(nb: NotebookNode) -> str:
    """Return the lesson's goal in one line: the first paragraph under its title."""
    source = nb.cells[0].source if nb.cells else ""
    blocks = [block.strip() for block in source.split("\n\n")[1:]]
    blocks = [block for block in blocks if block and not block.startswith(BADGE)]
    return " ".join(blocks[0].split()) if blocks else ""


# --- canonical form -----------------------------------------------------------------------------


def canonical(nb: NotebookNode) -> NotebookNode:
    """Return the notebook in its one committed form; twice gives the same as once.

    Cell ids come from the cells' sources, so a source edited after rendering shows; metadata is
    fixed but for the cells' tags; streams are joined and progress bars collapsed.
    """
    cells, seen = [], {}
    for cell in nb.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        clean = {
            "id": digest if seen[digest] == 1 else f"{digest}-{seen[digest]}",
            "cell_type": cell.cell_type,
            "source": cell.source,
            "metadata": {key: cell.metadata[key] for key in ("tags",) if cell.metadata.get(key)},
        }
        if cell.cell_type == "code":
            count = cell.get("execution_count")
            clean |= {"execution_count": count, "outputs": clean_outputs(cell.outputs, count)}
        if cell.get("attachments"):
            clean["attachments"] = cell.attachments
        cells.append(clean)
    return nbformat.from_dict(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells}
    )


def clean_outputs(outputs: list[NotebookNode], count: int | None) -> list[NotebookNode]:
    """Return outputs with their streams joined, bars collapsed and the cell's count in them."""
    collapsed = []
    for output in join_streams(outputs):
        if output.output_type == "stream":
            output.text = collapse(output.text, keep_bars=output.name == "stdout")
        if output.get("execution_count"):
            output.execution_count = count
        if output.get("text", "…").strip():
            collapsed.append(output)
    return join_streams(collapsed)


def join_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return a copy of the outputs in which neighbours of the same stream are one."""
    joined: list[NotebookNode] = []
    for output in copy.deepcopy(outputs):
        if joined and output.output_type == "stream" and output.name == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def collapse(text: str, keep_bars: bool) -> str:
    """Return text with every overwritten line reduced to its last state, or left out."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if "\r" not in line:
            lines.append(line)
        elif keep_bars:
            last = [state for state in line.split("\r") if state][-1:]
            lines += [state.rstrip() for state in last if state.strip()]
    return "\n".join(lines)


def to_text(nb: NotebookNode) -> str:
    """Return the notebook as the text of its file."""
    return v4.writes(nb, indent=1) + "\n"


# --- what may not be in a lesson ----------------------------------------------------------------


def problems(nb: NotebookNode) -> Iterator[str]:
    """Yield, one sentence each, what keeps an executed canonical notebook from being committed."""
    expected = 0
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type != "code":
            continue
        first_line = cell.source.strip().partition("\n")[0]
        where = f"cell {number} ({first_line})"
        expected += 1
        if not first_line:
            yield f"cell {number} is an empty code cell"
        if cell.execution_count != expected:
            yield f"{where} has execution count {cell.execution_count}, expected {expected}"
            expected = cell.execution_count or expected
        for output in cell.outputs:
            yield from (f"{where} {problem}" for problem in output_problems(output))
    if not any(cell.get("outputs") for cell in nb.cells):
        yield "has no outputs"
    if not nb.cells or CLOSING not in nb.cells[-1].source:
        yield f"does not end with a section '{CLOSING}'"
    if (size := len(to_text(nb).encode())) > MAX_BYTES:
        yield f"is {size:,} bytes, more than {MAX_BYTES:,}"


def output_problems(output: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with one output."""
    if output.output_type == "error":
        yield f"raised {output.ename}: {output.evalue}"
        return
    data = {"text/plain": output.text} if output.output_type == "stream" else output.data
    text = "\n".join(str(data[kind]) for kind in data if kind.startswith("text/"))
    if output.get("name") == "stderr":
        yield f"writes to standard error: {text.strip().splitlines()[0]}"
    if any(kind.startswith("application/vnd.jupyter.widget") for kind in data):
        yield "shows a widget, which a rendered page cannot"
    if found := MACHINE_PATH.search(text):
        yield f"shows a path of this machine: {found[0]}"
    if found := MEMORY_ADDRESS.search(text):
        yield f"shows a memory address: {found[0]}"
