"""Mutants of a cell: its source with one thing broken, in Python by its tree, in CUDA C by text."""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod, ast.Mod: ast.Add, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
# In CUDA C: what stands in the place of what. Comments are left out before.
C_SWAPS = [
    (r"\+=", "="), (r"-=", "+="), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "),
    (r"(?<![<-])<(?![<=])", "<="), (r"<=", "<"), (r">=", ">"), (r"==", "!="), (r"!=", "=="),
    (r"&&", "||"), (r"\|\|", "&&"), (r"atomicAdd\(.*\);", ";"),
    (r"(?:__sync\w+|barrier)\(.*?\);", ";"),
]  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A broken cell: which object, the line before and after, and the whole source.

    `n` tells mutants of equal lines of an object apart, in their order.
    """

    name: str
    before: str
    after: str
    source: str
    n: int = 0

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What names the mutant in a lesson."""
        return self.name, self.before, self.after, self.n

    def __str__(self) -> str:
        return f"{self.name}: `{self.before}` → `{self.after or 'nothing'}`"


def mutants(source: str) -> list[Mutant]:
    """The mutants of a cell, in order; of Python those in the bodies of functions and classes."""
    of_cell, seen = (of_cuda if source.startswith(("%%cuda", "%%opencl")) else of_python), {}
    result = []
    for mutant in of_cell(source):
        n = seen[mutant.key] = seen.get(mutant.key, -1) + 1
        result.append(Mutant(*mutant.key[:3], mutant.source, n))
    return result


def of_python(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a cell of Python. A cell that has a magic has its line kept."""
    magic, _, body = source.partition("\n") if source.startswith("%%") else ("", "", source)
    tree = ast.parse(body)
    texts = [ast.unparse(part) for part in tree.body]
    for path, _ in list(statements(tree)):
        (block, index), (_, top) = holder(tree, path), path[0]
        statement, name = block[index], named(tree, path)
        before = head(statement)
        for number in range(len(list(changes(statement)))):
            change = list(changes(copy.deepcopy(statement)))[number]
            block[index] = ast.fix_missing_locations(change())
            after = "" if isinstance(block[index], ast.Pass) else head(block[index])
            text = "\n".join([*texts[:top], ast.unparse(tree.body[top]), *texts[top + 1 :]])
            yield Mutant(name, before, after, f"{magic}\n{text}" if magic else text)
        block[index] = statement


Path = tuple[tuple[str, int], ...]


def statements(root: ast.AST, path: Path = (), inside: bool = False) -> Iterator[tuple[Path, bool]]:
    """Yield where each statement lies that is in a function's or class's body."""
    for field in ("body", "orelse", "finalbody"):
        for index, node in enumerate(getattr(root, field, None) or []):
            here = (*path, (field, index))
            defines = isinstance(node, ast.FunctionDef | ast.ClassDef)
            if inside and not defines and not documentation(node):
                yield here, inside
            yield from statements(node, here, inside or defines)


def documentation(node: ast.stmt) -> bool:
    """Whether a statement does nothing: a docstring, `pass`; or raises, which may stay as it is."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass | ast.Raise | ast.Import | ast.ImportFrom)


def holder(root: ast.AST, path: Path) -> tuple[list, int]:
    """The block that a statement lies in, and its index there."""
    for field, index in path[:-1]:
        root = getattr(root, field)[index]
    return getattr(root, path[-1][0]), path[-1][1]


def named(root: ast.AST, path: Path) -> str:
    """The outermost function or class that a statement lies in."""
    for field, index in path:
        root = getattr(root, field)[index]
        if isinstance(root, ast.FunctionDef | ast.ClassDef):
            return root.name
    raise ValueError(f"path: expected one in a function or class, got {path}")


def head(statement: ast.stmt) -> str:
    """A statement as text, of one with a body the first line."""
    return ast.unparse(statement).partition("\n")[0]


def changes(statement: ast.stmt) -> Iterator:
    """Yield functions that each break a statement in one way and return it, or what replaces it."""
    if isinstance(statement, ast.AugAssign):
        yield lambda: ast.Assign([statement.target], statement.value)
        if type(statement.op) in (ast.Add, ast.Sub):
            yield lambda: swap(statement, statement)
    stored = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
    if isinstance(statement, ast.Expr) or stored:
        yield ast.Pass
    for node in own_nodes(statement):
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
            if not all(isinstance(side, ast.Constant) for side in sides(node)):
                yield lambda node=node: swap(node, statement)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield lambda node=node: swap(node, statement)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            if not isinstance(node.operand, ast.Constant):
                yield lambda node=node: without_sign(node, statement)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "numba.prange"):
            yield lambda node=node: one_less(node, statement)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without those of the statements in its body."""
    open_ = [statement]
    while open_:
        node = open_.pop(0)
        yield node
        open_ += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]


def sides(node: ast.BinOp | ast.BoolOp) -> list[ast.expr]:
    """The operands of an operator."""
    return node.values if isinstance(node, ast.BoolOp) else [node.left, node.right]


def swap(node: ast.AST, statement: ast.stmt) -> ast.stmt:
    """Put another operator in the place of a node's."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    else:
        node.op = SWAPPED[type(node.op)]()
    return statement


def without_sign(node: ast.UnaryOp, statement: ast.stmt) -> ast.stmt:
    """Take a minus or a `not` away: the operator becomes one that does nothing."""
    node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
    if isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    return statement


def one_less(call: ast.Call, statement: ast.stmt) -> ast.stmt:
    """Let a range end one earlier."""
    end = 0 if len(call.args) == 1 else 1
    call.args[end] = ast.BinOp(call.args[end], ast.Sub(), ast.Constant(1))
    return statement


def of_cuda(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a cell of CUDA C; a line of it may have several."""
    magic, *lines = source.split("\n")
    name = magic.split()[1]
    for k, line in enumerate(lines):
        code, slashes, comment = line.partition("//")
        if code.startswith(("#", 'extern "C"', "__global__", "__kernel")):
            continue
        for pattern, other in C_SWAPS:
            for match in re.finditer(pattern, code):
                broken = code[: match.start()] + other + code[match.end() :]
                text = [*lines[:k], broken + slashes + comment, *lines[k + 1 :]]
                yield Mutant(name, code.strip(), broken.strip(), "\n".join([magic, *text]))
