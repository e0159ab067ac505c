"""A lesson as a file: the cells that are stamped, its canonical form, what may not be in it."""

import ast
import copy
import hashlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from cnnlab.course import answers, parts

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cnnlab"
MAX_BYTES = 700_000
CLOSING = "In this lesson we have"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

BADGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
COLAB = "https://colab.research.google.com/github"
# The setup cell finds `cnnlab.runtime.setup`, in a wheel or zip as well, and has it do the rest.
SETUP = """\
glob, pydoc, sys = map(__import__, ("glob", "pydoc", "sys"))  # Setup: finds cnnlab, or installs it
sys.path += [f for p in (".", "..", "/content") for f in (p, *glob.glob(f"{{p}}/cnnlab*"))]
{ready}"""
READY = """(pydoc.locate("cnnlab.runtime.setup.ready") or sys.exit)("{otherwise}")"""
OTHERWISE = "Put cnnlab.zip beside this lesson."
FETCH = """\
if not pydoc.locate("cnnlab.runtime.setup.ready"):
    sys.modules.pop("cnnlab", None)  # any folder of that name will do to import it
    %pip install --quiet "{package} @ git+{address}"
"""

# Absolute paths of two names or more, except those on every Linux, and object addresses.
MACHINE_PATH = re.compile(r"(?<![\w.:/<~])/(?!proc/|sys/|dev/)(?:[\w.+-]+/)+[\w.+-]*|site-packages")
MEMORY_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}", re.IGNORECASE)
INLINE_IMAGE = re.compile(r"data:image/[\w+]+;base64,[\w+/=]+")  # letters of which look like paths
IMAGE_TAG = re.compile(r"<img\b[^>]*>")
ALT = re.compile(r"\balt=[\"'][^\"']*\w")


# --- stamped cells ------------------------------------------------------------------------------


def title_source(source: str, name: str, address: str | None) -> str:
    """The title cell: the heading from lessons.toml, with a Colab badge under it.

    A lesson that is not listed keeps its heading. Colab opens notebooks from GitHub only, so for
    any other address there is no badge.
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
    """The setup cell, which finds cnnlab, or installs it from beside the lesson or the address."""
    ready = READY.format(otherwise=OTHERWISE)
    if address:
        package = "cnnlab" + (f"[{','.join(extras)}]" if extras else "")
        ready = FETCH.format(package=package, address=address) + ready
    return SETUP.format(ready=ready)


def kernel_source(name: str) -> str:
    """The source of a function or class in cnnlab/kernels, such as `loops.conv_forward`.

    Other names, such as `ranks.schedules.ring`, are relative to cnnlab, and may be of a method, as
    `distributed.server.Server.take`; `conv.cu.conv_forward` is CUDA C with the cell magic that
    compiles it. Raises ValueError for an unknown name.
    """
    *module, function = name.split(".")
    if module[1:] == ["cu"]:
        return cuda_source(module[0], function)
    of_class = module.pop() if module and module[-1][0].isupper() else None
    places = [PACKAGE.joinpath(*room, *module) for room in (["kernels"], [])]
    for path in (place.with_suffix(".py") for place in places if module):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        nodes = ast.parse(text).body
        if of_class:
            classes = [n for n in nodes if isinstance(n, ast.ClassDef) and n.name == of_class]
            nodes = [node for one in classes for node in one.body]
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                lines = text.splitlines()[first - 1 : node.end_lineno]
                return textwrap.dedent("\n".join(lines))
    raise ValueError(f"kernel: expected module.function below cnnlab, got {name!r}")


def cuda_source(file: str, kernel: str) -> str:
    """A cell that compiles a kernel of cnnlab/cuda, with its comment and the functions it calls.

    Where the source defines sizes and macros, it is compiled whole, with the cell's function in it.
    """
    path = (PACKAGE / "cuda" / file).with_suffix(".cu")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    whole = re.search("^#define", text, re.MULTILINE)
    start = "[^\\n/]*" if whole else 'extern "C" __global__ void '
    pattern = rf"^(?://[^\n]*\n)*{start}\b{re.escape(kernel)}\(.*?^}}"
    if found := re.search(pattern, text, re.MULTILINE | re.DOTALL):
        if whole:
            return f"%%cuda {kernel} in {file}\n{found[0]}"
        helpers = re.findall(r"^(__device__ \w+ (\w+)\(.*\n)", text, re.MULTILINE)
        used = [line for line, helper in helpers if f"{helper}(" in found[0]]
        return f"%%cuda {kernel}\n{''.join(used)}{found[0]}"
    raise ValueError(f"kernel: expected a kernel of cnnlab/cuda, got {file}.cu.{kernel}")


def stamp(nb: NotebookNode, name: str, address: str | None) -> NotebookNode:
    """A copy of the notebook with its title, setup and kernel cells up to date.

    The setup cell is the first code cell, tagged `setup`; its other tags name extras of cnnlab. A
    cell tagged `kernel:loops.conv_forward` shows that function, character for character, and one
    tagged `answers` folds away the model answers. Raises ValueError if the first cell is not a
    title, the first code cell is not tagged `setup`, or a kernel or the answers do not exist.
    """
    nb = copy.deepcopy(nb)
    if not nb.cells or nb.cells[0].cell_type != "markdown" or not nb.cells[0].source[:2] == "# ":
        raise ValueError(f"{name}: expected a first cell of markdown that begins with '# '")
    nb.cells[0].source = title_source(nb.cells[0].source, name, address)
    setup = next((cell for cell in nb.cells if cell.cell_type == "code"), None)
    if setup is None or "setup" not in setup.metadata.get("tags", []):
        raise ValueError(f"{name}: expected the tag 'setup' on the first code cell")
    setup.source = setup_source(address, [tag for tag in setup.metadata.tags if tag != "setup"])
    for cell in nb.cells:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("kernel:"):
                cell.source = kernel_source(tag.removeprefix("kernel:"))
            elif tag == "answers":
                cell.source = answers.folded(name)
    return nb


def shows_kernel(cell: NotebookNode) -> bool:
    """Whether a cell is a copy of a kernel, made by `stamp`."""
    return any(tag.startswith("kernel:") for tag in cell.metadata.get("tags", []))


def title(nb: NotebookNode) -> str:
    """The title of a lesson: the heading of its first cell."""
    source = nb.cells[0].source if nb.cells else ""
    return source.partition("\n")[0].removeprefix("# ").strip()


def goal(nb: NotebookNode) -> str:
    """The goal of a lesson in one line: the first paragraph under its title."""
    source = nb.cells[0].source if nb.cells else ""
    blocks = [block.strip() for block in source.split("\n\n")[1:]]
    blocks = [block for block in blocks if block and not block.startswith(BADGE)]
    return " ".join(blocks[0].split()) if blocks else ""


# --- canonical form -----------------------------------------------------------------------------


def canonical(nb: NotebookNode) -> NotebookNode:
    """The notebook in its canonical form, the only one that is committed.

    Cell ids are digests of the sources, so an edit after rendering shows. Metadata is fixed, except
    for the tags of cells. Streams are joined and progress bars collapsed.
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
    """The outputs with streams joined, progress bars collapsed and the count of their cell."""
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
    """A copy of the outputs in which neighbours of the same stream are joined."""
    joined: list[NotebookNode] = []
    for output in copy.deepcopy(outputs):
        if joined and output.output_type == "stream" and output.name == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def collapse(text: str, keep_bars: bool) -> str:
    """The text with each overwritten line in its last state, or left out."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if "\r" not in line:
            lines.append(line)
        elif keep_bars:
            last = [state for state in line.split("\r") if state][-1:]
            lines += [state.rstrip() for state in last if state.strip()]
    return "\n".join(lines)


def to_text(nb: NotebookNode) -> str:
    """The text of a notebook's file."""
    return v4.writes(nb, indent=1) + "\n"


# --- what may not be in a lesson ----------------------------------------------------------------


def problems(nb: NotebookNode) -> Iterator[str]:
    """Yield the reasons, one sentence each, not to commit an executed canonical notebook."""
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
            yield f"{where}: expected execution count {expected}, got {cell.execution_count}"
            expected = cell.execution_count or expected
        for output in cell.outputs:
            yield from (f"{where} {problem}" for problem in output_problems(output))
    if not any(cell.get("outputs") for cell in nb.cells):
        yield "has no outputs"
    if not nb.cells or CLOSING not in nb.cells[-1].source:
        yield f"does not end with a section '{CLOSING}'"
    if (size := len(to_text(nb).encode())) > MAX_BYTES:
        yield f"size: expected at most {MAX_BYTES:,} bytes, got {size:,}"


def undescribed(nb: NotebookNode) -> Iterator[str]:
    """Yield the images of a notebook that have no alternative text, by their cell."""
    for number, cell in enumerate(nb.cells, start=1):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            bare = [
                kind
                for kind in data
                if kind.startswith("image/") and not output.metadata.get(kind, {}).get("alt")
            ]
            tags = IMAGE_TAG.findall("".join(data.get("text/html", "")))
            if bare or not all(map(ALT.search, tags)):
                first_line = cell.source.strip().partition("\n")[0]
                yield f"cell {number} ({first_line}) shows an image without alternative text"


def output_problems(output: NotebookNode) -> Iterator[str]:
    """Yield the problems of one output."""
    if output.output_type == "error":
        yield f"raised {output.ename}: {output.evalue}"
        return
    data = {"text/plain": output.text} if output.output_type == "stream" else output.data
    text = "\n".join(str(data[kind]) for kind in data if kind.startswith("text/"))
    text = INLINE_IMAGE.sub("", text)
    if output.get("name") == "stderr":
        yield f"writes to standard error: {text.strip().splitlines()[0]}"
    if any(kind.startswith("application/vnd.jupyter.widget") for kind in data):
        yield "shows a widget, which a rendered page cannot"
    if found := MACHINE_PATH.search(text):
        yield f"shows a path of this machine: {found[0]}"
    if found := MEMORY_ADDRESS.search(text):
        yield f"shows a memory address: {found[0]}"
