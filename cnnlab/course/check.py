"""What may not be in a lesson that is committed."""

import re
from collections.abc import Iterator

from nbformat import NotebookNode, v4

MAX_BYTES = 700_000
CLOSING = "In this lesson we have"
# Absolute paths of two names or more, except those on every Linux, and object addresses.
MACHINE_PATH = re.compile(r"(?<![\w.:/<~])/(?!proc/|sys/|dev/)(?:[\w.+-]+/)+[\w.+-]*|site-packages")
MEMORY_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}", re.IGNORECASE)
INLINE_IMAGE = re.compile(r"data:image/[\w+]+;base64,[\w+/=]+")  # letters of which look like paths
IMAGE_TAG = re.compile(r"<img\b[^>]*>")
ALT = re.compile(r"\balt=[\"'][^\"']*\w")


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
            if undescribed(output):
                yield f"{where} shows an image without alternative text"
    if not any(cell.get("outputs") for cell in nb.cells):
        yield "has no outputs"
    if not nb.cells or CLOSING not in nb.cells[-1].source:
        yield f"does not end with a section '{CLOSING}'"
    if (size := len(v4.writes(nb, indent=1).encode())) > MAX_BYTES:
        yield f"size: expected at most {MAX_BYTES:,} bytes, got {size:,}"


def undescribed(output: NotebookNode) -> bool:
    """Whether an output has an image without alternative text."""
    data = output.get("data", {})
    images = [kind for kind in data if kind.startswith("image/")]
    described = [output.metadata.get(kind, {}).get("alt") for kind in images]
    described += map(ALT.search, IMAGE_TAG.findall("".join(data.get("text/html", ""))))
    return not all(described)


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
    if match := MACHINE_PATH.search(text):
        yield f"shows a path of this machine: {match[0]}"
    if match := MEMORY_ADDRESS.search(text):
        yield f"shows a memory address: {match[0]}"
