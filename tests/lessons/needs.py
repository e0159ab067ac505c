"""Which cells a cell needs: the names that each binds, changes and uses, and a walk back."""

import ast
import re
import symtable
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

MAGIC = "%"  # the name under which a cell that registers magics is needed by those that use one
Calls = tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True)
class Cell:
    """A code cell by its names: what it binds for later cells, and what it uses of earlier ones.

    `calls` are calls whose result nobody keeps, which may change their arguments: the name of each
    function, and all names in the call. `imports` are the names that it binds by an import.
    """

    source: str
    tags: frozenset[str]
    binds: frozenset[str]
    uses: frozenset[str]
    imports: frozenset[str] = frozenset()
    calls: Calls = ()


def cell(source: str, tags: Iterable[str], transform: Callable[[str], str]) -> Cell:
    """The Cell of a source; `transform` turns IPython's syntax, such as `%load_ext`, to Python.

    `%%cuda mine` binds `mine`, `%%ranks 4 run` binds `run`; both need a cell that loads magics, and
    the names in their body if that is Python.
    """
    if not source.startswith("%%"):
        binds, uses, imports, calls = names(transform(source))
        if re.search("^%", source, re.MULTILINE):
            binds |= {MAGIC}
        return Cell(source, frozenset(tags), binds, uses, imports, calls)
    magic, _, body = source.partition("\n")
    try:
        inner, uses, _, calls = names(transform(body))
    except SyntaxError:  # CUDA C
        inner, uses, calls = frozenset(), frozenset(), ()
    words = [word for word in magic.split()[1:3] if word.isidentifier()]
    return Cell(source, frozenset(tags), frozenset(words[:1]), uses - inner | {MAGIC}, calls=calls)


def names(source: str) -> tuple[frozenset, frozenset, frozenset, Calls]:
    """What Python source binds at its top level, what it uses, what it imports, and its calls."""
    table = symtable.symtable(source, "cell", "exec")
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_namespace()}
    imports = {s.get_name() for s in table.get_symbols() if s.is_imported()}
    uses, scopes = set(), [table]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        uses |= {
            symbol.get_name()
            for symbol in scope.get_symbols()
            if symbol.is_referenced() and (scope is table or symbol.is_global())
        }
    calls = []
    for node in outside_functions(ast.parse(source)):
        if isinstance(node, ast.AugAssign):
            uses |= {base(node.target)}
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = {base(t) for t in targets if not isinstance(t, ast.Name)} - {""}
            calls += [("", frozenset(stored))] if stored else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            given = [call.func, *call.args, *(keyword.value for keyword in call.keywords)]
            calls.append((base(call.func), frozenset(map(base, given)) - {""}))
    return frozenset(binds | imports), frozenset(uses), frozenset(imports), tuple(calls)


def outside_functions(root: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a tree that run when it does."""
    for node in ast.iter_child_nodes(root):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
            yield from outside_functions(node)


def base(node: ast.AST) -> str:
    """The name that an expression such as `a.b[c]` begins with, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def needed(cells: list[Cell], ends: Iterable[int]) -> list[int]:
    """The numbers of the cells that the cells `ends` need, themselves included, in order.

    A walk back: a cell is needed if it binds or may change a name that is open; the names that it
    binds are then closed, those that it uses open. A function of an imported module, such as a
    plot, is taken to change nothing.
    """
    modules = frozenset().union(*(each.imports for each in cells))
    ends, open_, result = set(ends), set(), []
    for k in range(max(ends, default=-1), -1, -1):
        each = cells[k]
        changes = [given for function, given in each.calls if function not in modules]
        if k in ends or each.binds.union(*changes) & open_:
            result.append(k)
            open_ = (open_ - each.binds) | each.uses
    return sorted(result)
