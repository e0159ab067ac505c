"""The source of cnnlab as data: its modules, what they import, what they define."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, TESTS, NOTEBOOKS = ROOT / "cnnlab", ROOT / "tests", ROOT / "notebooks"


def name_of(file: Path) -> str:
    """The name of a module without "cnnlab.", such as "kernels.vector.conv"; "" for the package."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), file)


def imported(root: ast.AST) -> set[str]:
    """The full names of what a tree imports, also within functions."""
    result = set()
    for node in ast.walk(root):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by the full name"
            result |= {f"{node.module}.{alias.name}" for alias in node.names}
    return result


def module_of(name: str) -> str:
    """The module in which a full name lies, without "cnnlab."; AssertionError if there is none."""
    inner = name.partition(".")[2]
    if inner in FILES:
        return inner
    module, _, what = inner.rpartition(".")
    assert module in FILES and what in {*names_in(module), "*"}, f"there is no {name}"
    return module


@functools.cache
def names_in(module: str) -> set[str]:
    """The names that a module defines or imports, and the modules in it if it is a package."""
    result = {name.rpartition(".")[2] for name in FILES if name.rpartition(".")[0] == module}
    for node in ast.walk(tree(FILES[module])):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            result.add(node.name)
        elif isinstance(node, ast.alias):
            result.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            result.add(node.id)
    return result


def of_cnnlab(root: ast.AST) -> set[str]:
    """The modules of cnnlab that a tree imports, without "cnnlab."."""
    return {module_of(name) for name in imported(root) if re.match(r"cnnlab\b", name)}


@functools.cache
def imports() -> dict[str, set[str]]:
    """The modules of cnnlab that each module imports."""
    return {name: of_cnnlab(tree(file)) for name, file in FILES.items()}


def entries(file: Path) -> set[str]:
    """What the registry entries of a file name, such as "cnnlab.training.method:Method"."""
    strings = (str(n.value) for n in ast.walk(tree(file)) if isinstance(n, ast.Constant))
    return {text for text in strings if re.fullmatch(r"cnnlab\.[\w.]+:\w+", text)}


def room(module: str) -> str:
    """The room of a module: "kernels" for "kernels.vector.conv"."""
    return module.partition(".")[0]


def arrows() -> dict[str, set[str]]:
    """The rooms that each room imports. What an entry names counts, though it is loaded later."""
    result = {room(name): set() for name in FILES if name}
    for name, file in ((name, file) for name, file in FILES.items() if name):
        loaded = {module_of(entry.replace(":", ".")) for entry in entries(file)}
        for other in imports()[name] | loaded:
            result[room(name)] |= {room(other)} - {room(name)}
    return result
