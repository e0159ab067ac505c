"""What a student has handed in, as statements: read from the code of a notebook, and never run.

Nothing but the text of the cells is looked at: Colab and editors lose what else is in a notebook.
"""

import ast
import json
import symtable
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST = 50 << 20  # bytes of a notebook
STAR = "*"  # as a name that a statement defines: it imports all that a module has
# What Python's parsers raise, and what is no notebook.
UNSAFE = (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, AttributeError)


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a cell, with the names that it defines and those that it uses."""

    cell: int
    code: str
    node: ast.stmt | None = field(repr=False, compare=False)  # None: a cell of CUDA C, as `code`
    defines: frozenset[str]
    uses: frozenset[str] = frozenset()


@dataclass
class Notebook:
    """The statements of a file in order, and what could not be read."""

    path: Path
    statements: list[Statement]
    problems: list[str]

    @property
    def text(self) -> str:
        """All code, for who looks for a word."""
        return "\n".join(each.code for each in self.statements)


def read(path: Path) -> Notebook:
    """The statements of a notebook or a Python file; a cell that is wrong is left out, and told."""
    try:
        if path.stat().st_size > MOST:
            raise ValueError(f"expected at most {MOST >> 20} MB")
        text = decoded(path.read_bytes())
        cells = [text] if path.suffix == ".py" else list(code_cells(text))
    except (OSError, *UNSAFE) as problem:
        return Notebook(path, [], [f"{path.name}: cannot be read: {first_line(problem)}"])
    found = Notebook(path, [], [])
    for number, cell in enumerate(cells, start=1):
        try:
            found.statements += statements(cell, number)
        except UNSAFE as problem:
            found.problems.append(f"{path.name}, code cell {number}: {first_line(problem)}")
    return found


def first_line(problem: BaseException) -> str:
    """The first line of what went wrong, and its kind."""
    return f"{type(problem).__name__}: {problem}".partition("\n")[0][:200]


def decoded(raw: bytes) -> str:
    """The text of a file in UTF-8, UTF-16 or, if it is neither, Latin-1."""
    wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[1:2] == b"\0" or raw[:1] == b"\0"
    for encoding in ("utf-16" if wide else "utf-8-sig", "utf-8-sig", "utf-16-le"):
        try:
            return raw.decode(encoding)
        except UnicodeError:
            continue
    return raw.decode("latin-1")


def code_cells(text: str) -> Iterator[str]:
    """The source of each code cell; also of old notebooks, whose cells lie in worksheets."""
    nb = json.loads(text)
    if not isinstance(nb, dict):
        raise ValueError("expected a notebook, got something else")
    sheets = nb.get("worksheets") or [nb]
    for cell in (cell for sheet in sheets for cell in sheet.get("cells", [])):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            yield source if isinstance(source, str) else "".join(map(str, source))


def statements(cell: str, number: int) -> Iterator[Statement]:
    """The statements of a cell. One of CUDA C is a single one, which defines the kernels' name."""
    from IPython.core.inputtransformer2 import TransformerManager

    head, _, rest = cell.lstrip().partition("\n")
    if head.startswith("%%"):
        words = head.split()
        if words[0] == "%%cuda" and len(words) == 2:
            yield Statement(number, rest, None, frozenset(words[1:]))
            return
        if words[0] not in ("%%time", "%%timeit", "%%capture", "%%prun"):
            return
        cell = rest
    code = TransformerManager().transform_cell(textwrap.dedent(cell))
    for node in ast.parse(code).body:
        source = ast.unparse(node)
        table = symtable.symtable(source, "cell", "exec")
        yield Statement(number, source, node, frozenset(defined(node, table)), used(table))


def defined(node: ast.stmt, table: symtable.SymbolTable) -> set[str]:
    """The names that a statement gives a value, or changes a part of."""
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        names.add(STAR)
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
            if isinstance(target, ast.Name):
                names.add(target.id)
    return names


def used(table: symtable.SymbolTable) -> frozenset[str]:
    """The names of the notebook that a statement uses, also within functions."""
    top = table.get_type() == "module" or str(table.get_type()).endswith("MODULE")
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (symbol.is_referenced() and (top or symbol.is_global()))
    }
    return frozenset(found).union(*(used(child) for child in table.get_children()))
