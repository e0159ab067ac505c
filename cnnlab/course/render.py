"""Lessons as they are stored: run, given the cells that are written for them, and canonical.

Written are the title, the setup cell, copies of kernels, the model answers at the end, and how long
slow cells take. The canonical form is the only one that is committed.
"""

import ast
import base64
import copy
import hashlib
import io
import math
import re
import sys
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4
from PIL import Image  # which Matplotlib brings

from cnnlab.course import answers, check, parts
from cnnlab.course.execute import execute
from cnnlab.runtime.files import replacing

PACKAGE = Path(__file__).resolve().parents[1]
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
{fetch}(pydoc.locate("cnnlab.runtime.setup.ready") or sys.exit)("{otherwise}")"""
OTHERWISE = "Put your teacher's cnnlab.zip here."
FETCH = """\
if not pydoc.locate("cnnlab.runtime.setup.ready"):
    sys.modules.pop("cnnlab", None)  # any folder of that name will do to import it
    %pip install --quiet "{package} @ git+{address}"
"""

SLOW = 5  # seconds; what is quicker says nothing
# Below so many seconds, a cell "takes about" this: coarse, so that a render changes few of them.
ABOUT = {15: "10 s", 30: "20 s", 50: "40 s", 90: "1 min", 180: "2 min", math.inf: "5 min"}
DURATION = re.compile(r"# takes about (\d+) (s|min)")


def title_source(source: str, name: str, address: str | None) -> str:
    """The title cell: the heading, from lessons.toml if it is there, and a badge under it.

    Colab opens notebooks from GitHub only, so for any other address there is no badge.
    """
    heading, *rest = source.strip().splitlines()
    if listed := parts.lessons().get(name.removesuffix(".ipynb")):
        heading = listed.heading
    text = "\n".join(line for line in rest if not line.startswith(BADGE)).strip()
    _, _, owner_and_name = (address or "").partition("https://github.com/")
    badge = f"{BADGE}({COLAB}/{owner_and_name}/blob/main/notebooks/{name})" * bool(owner_and_name)
    return "\n\n".join(part for part in (heading, badge, text) if part)


def setup_source(address: str | None, extras: list[str]) -> str:
    """The setup cell, which finds cnnlab, or installs it from beside the lesson or the address."""
    package = f"cnnlab[{','.join(extras)}]" if extras else "cnnlab"
    fetch = FETCH.format(package=package, address=address) if address else ""
    return SETUP.format(fetch=fetch, otherwise=OTHERWISE)


def kernel_source(name: str) -> str:
    """The source of a function or class in cnnlab/kernels, such as `loops.conv_forward`.

    Other names, such as `ranks.schedules.ring`, are relative to cnnlab; `conv.cu.conv_forward` is
    CUDA C with the cell magic that compiles it. Raises ValueError for an unknown name.
    """
    *module, function = name.split(".")
    if module[1:] == ["cu"]:
        return cuda_source(module[0], function)
    files = [PACKAGE.joinpath(*room, *module).with_suffix(".py") for room in (["kernels"], [])]
    for text in (file.read_text(encoding="utf-8") for file in files if file.is_file()):
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"kernel: expected module.function below cnnlab, got {name!r}")


def cuda_source(file: str, kernel: str) -> str:
    """A cell that compiles a kernel of cnnlab/cuda, with its comment and the functions it calls.

    Where the source defines sizes and macros, it is compiled whole, with the cell's function in it.
    """
    path = PACKAGE / "cuda" / f"{file}.cu"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    whole = re.search("^#define", text, re.MULTILINE)
    start = "[^\\n/]*" if whole else 'extern "C" __global__ void '
    pattern = rf"^(?://[^\n]*\n)*{start}\b{re.escape(kernel)}\(.*?^}}"
    match = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if not match:
        raise ValueError(f"kernel: expected a kernel of cnnlab/cuda, got {file}.cu.{kernel}")
    if whole:
        return f"%%cuda {kernel} in {file}\n{match[0]}"
    helpers = re.findall(r"^(__device__ \w+ (\w+)\(.*\n)", text, re.MULTILINE)
    used = [line for line, helper in helpers if f"{helper}(" in match[0]]
    return f"%%cuda {kernel}\n{''.join(used)}{match[0]}"


def stamp(nb: NotebookNode, name: str, address: str | None) -> NotebookNode:
    """A copy of the notebook with its title, setup and kernel cells up to date.

    The first code cell is tagged `setup`; its other tags name extras of cnnlab. A cell tagged
    `kernel:loops.conv_forward` shows that function, and one tagged `answers` folds away the model
    answers. Raises ValueError if title or setup cell, a kernel or the answers do not exist.
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
    return nb.cells[0].source.partition("\n")[0].removeprefix("# ").strip()


def goal(nb: NotebookNode) -> str:
    """The goal of a lesson in one line: the first paragraph under its title."""
    blocks = nb.cells[0].source.split("\n\n")[1:]
    return next((" ".join(b.split()) for b in blocks if b.strip() and BADGE not in b), "")


# --- after a run: how long slow cells took, images in fewer bytes -------------------------------


def seconds(cell: NotebookNode) -> float:
    """How long a code cell has run, by the times that nbclient's `record_timing` noted; else 0."""
    times = cell.metadata.get("execution", {})
    if not (start := times.get("iopub.execute_input")) or "shell.execute_reply" not in times:
        return 0.0
    end = datetime.fromisoformat(times["shell.execute_reply"])
    return (end - datetime.fromisoformat(start)).total_seconds()


def note_durations(nb: NotebookNode) -> None:
    """Write above each slow cell that has just run, below a cell magic, how long it took."""
    for cell in nb.cells:
        stamped = "setup" in cell.metadata.get("tags", []) or shows_kernel(cell)
        if cell.cell_type == "code" and not stamped:
            lines = [line for line in cell.source.split("\n") if not DURATION.fullmatch(line)]
            if (took := seconds(cell)) >= SLOW:
                about = next(text for most, text in ABOUT.items() if took < most)
                lines.insert(lines[0].startswith("%%"), f"# takes about {about}")
            cell.source = "\n".join(lines)


def noted_seconds(nb: NotebookNode) -> int:
    """The seconds that the comments in a notebook's slow cells add up to; 0 if none is slow."""
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    noted = re.findall(rf"^{DURATION.pattern}$", text, re.MULTILINE)
    return sum(int(number) * {"s": 1, "min": 60}[unit] for number, unit in noted)


def lighten(nb: NotebookNode) -> None:
    """Store each PNG of a notebook's outputs as small as it can be without loss."""
    for output in (output for cell in nb.cells for output in cell.get("outputs", [])):
        if text := output.get("data", {}).get("image/png"):
            image, file = Image.open(io.BytesIO(base64.b64decode(text))), io.BytesIO()
            if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
                image = image.convert("RGB")  # it is opaque
            image.save(file, "png", optimize=True)
            smaller = base64.b64encode(file.getvalue()).decode()
            output.data["image/png"] = min(text, smaller, key=len)


# --- canonical form -----------------------------------------------------------------------------


def canonical(nb: NotebookNode) -> NotebookNode:
    """The notebook in its canonical form, with nothing in its metadata but the tags of cells.

    Cell ids are digests of the sources, so an edit after rendering shows.
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
    joined = join_streams(outputs)
    for output in joined:
        if output.output_type == "stream":
            output.text = collapse(output.text, keep_bars=output.name == "stdout")
        elif output.get("execution_count"):
            output.execution_count = count
    return join_streams([output for output in joined if output.get("text", "…").strip()])


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
        last = line.rstrip("\r").rpartition("\r")[2]
        if "\r" not in line:
            lines.append(line)
        elif keep_bars and last.strip():
            lines.append(last.rstrip())
    return "\n".join(lines)


def to_text(nb: NotebookNode) -> str:
    """The text of a notebook's file."""
    return v4.writes(nb, indent=1) + "\n"


# --- commands -----------------------------------------------------------------------------------


def for_each(command: str, wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Carry out "render", "stamp" or "check" on lessons; report problems, return the exit status.

    A lesson with a problem stays as it was. What cannot be stamped is a problem, too.
    """
    work, failures = {"render": render, "stamp": restamp, "check": verify}[command], {}
    paths = parts.find_lessons(wanted, notebooks)
    for path in paths:
        nb = nbformat.read(path, as_version=4)
        try:
            failures[path.stem] = work(path, nb, stamp(nb, path.name, address))
        except ValueError as problem:
            failures[path.stem] = [str(problem)]
    if command == "check" and not any(failures.values()):
        print(f"{plural(len(paths))} in canonical form")
    return report(failures)


def render(path: Path, _: NotebookNode, stamped: NotebookNode) -> list[str]:
    """Execute a stamped lesson and store it, canonical; return its problems."""
    if error := execute(stamped, path, strict=True):
        return [error]
    note_durations(stamped)
    lighten(stamped)
    stamped = canonical(stamped)
    return list(check.problems(stamped)) or store(stamped, path)


def restamp(path: Path, nb: NotebookNode, stamped: NotebookNode) -> list[str]:
    """Store a stamped lesson whose outputs stay; return its problems.

    One whose code was edited since it was rendered, or whose kernels have changed, has to run.
    """
    old, new = ([c.source for c in each.cells if shows_kernel(c)] for each in (nb, stamped))
    stored, code = ([c for c in e.cells if c.cell_type == "code"] for e in (nb, canonical(nb)))
    if old != new or stored != code:
        return [f"has to be run → make render LESSON={path.stem}"]
    return store(canonical(stamped), path)


def verify(path: Path, nb: NotebookNode, stamped: NotebookNode) -> list[str]:
    """The problems of a lesson that is not stored as rendered."""
    wrong = list(check.problems(nb))
    if edited(path, nb):
        cells = enumerate(zip(nb.cells, canonical(nb).cells, strict=True))
        where = [f"cell {n}" for n, (old, new) in cells if old != new] or ["the file"]
        wrong.append(f"was edited after rendering, or is not in canonical form: {where[0]}")
    if stamped != nb:
        wrong.append("has an outdated title, setup or kernel cell")
    return [*wrong, f"→ make render LESSON={path.stem}"] if wrong else []


def edited(path: Path, nb: NotebookNode) -> bool:
    """Whether a notebook is not as `render` has stored it."""
    return to_text(canonical(nb)) != path.read_text(encoding="utf-8")


def store(nb: NotebookNode, path: Path) -> list[str]:
    """Write a notebook to its file; return no problems."""
    with replacing(path) as file:
        file.write(to_text(nb).encode())
    return []


def plural(n: int) -> str:
    """A number of lessons, such as "1 lesson" or "6 lessons"."""
    return f"{n} lesson{'s' if n != 1 else ''}"


def report(failures: dict[str, list[str]]) -> int:
    """Print the problems of each lesson, if any, to standard error; return the exit status."""
    for name, texts in failures.items():
        if texts:
            print(f"\n{name}:", *texts, sep="\n  ", file=sys.stderr)
    return int(any(failures.values()))
