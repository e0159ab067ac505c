"""Read the code of an answer, and say whether it may be looked into: whether it only computes.

A kernel of Numba, or a rank program, needs arithmetic, arrays and loops. Code that has nothing else
cannot change the log of accesses that is kept while it runs.
"""

import ast
import sys

MODULES = ("numpy", "numba", "math", "mpi4py", "cnnlab.kernels.compiled", "cnnlab.ranks.schedules")
NAMES = {
    "breakpoint", "classmethod", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals",
    "hasattr", "help", "input", "locals", "memoryview", "objmode", "open", "property",
    "setattr", "staticmethod", "super", "vars",
}  # fmt: skip
ATTRIBUTES = NAMES | {
    "carray", "cfunc", "config", "core", "ctypes", "ctypeslib", "data", "dump", "dumps",
    "experimental", "extending", "f2py", "farray", "frombuffer", "fromfile", "jitclass", "lib",
    "load", "memmap", "overload", "rec", "save", "savez", "setflags", "testing", "tofile",
}  # fmt: skip
# NumPy and Numba have some of Python's modules as attributes; these names are of others, too.
PYTHONS = sys.stdlib_module_names - {"array", "copy", "math", "random", "select", "trace", "types"}
HIDDEN = "_", "f_", "gi_", "tb_"  # how names of what is private begin, and of Python's frames
STATEMENTS = ast.FunctionDef | ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
NEVER = (
    ast.ClassDef, ast.AsyncFunctionDef, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.With
)  # fmt: skip


def reaches(code: str) -> str:
    """The first thing in an answer's code that is more than computing, in words; "" if none."""
    for statement in ast.parse(code).body:
        if not isinstance(statement, STATEMENTS):
            return f"line {statement.lineno}: {ast.unparse(statement)[:60]}"
        for node in ast.walk(statement):
            if what := foreign(node):
                return f"line {getattr(node, 'lineno', statement.lineno)}: {what}"
    return ""


def foreign(node: ast.AST) -> str:
    """What in a node is more than computing; "" if nothing."""
    if isinstance(node, NEVER):
        return type(node).__name__.lower()
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names = names or [alias.name for alias in node.names]
        known = all(any(n == m or n.startswith(f"{m}.") for m in MODULES) for n in names)
        ours = all(name.startswith("cnnlab.") for name in names)
        parts = {part for alias in node.names for part in alias.name.split(".")}
        never = PYTHONS if ours else ATTRIBUTES | PYTHONS
        return "" if known and not parts & never else ast.unparse(node)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        inner = [part for target in targets for part in ast.walk(target)]
        if any(isinstance(part, ast.Attribute) for part in inner if stored(part)):
            return ast.unparse(node)[:60]
    if isinstance(node, ast.Attribute):
        never = node.attr in ATTRIBUTES | PYTHONS or node.attr.startswith(HIDDEN)
        return node.attr if never else ""
    name = getattr(node, "id", "")
    return name if name in NAMES or name.startswith("__") else ""


def stored(node: ast.AST) -> bool:
    """Whether a node is written to."""
    return isinstance(getattr(node, "ctx", None), ast.Store)
