"""Skeletons solved by the model answers. A solution only adds lines to its skeleton."""

import ast
import difflib
import re
from pathlib import Path

from nbformat import NotebookNode

from cnnlab.course import answers
from cnnlab.course.assignment.exercises import Asked
from cnnlab.course.assignment.stripped import still_used

MAGIC = "%%cuda"
Line = tuple[str, bool]  # a line of a cell, and whether the solution adds it


def solved(nb: NotebookNode, asked: Asked, folder: Path = answers.EXERCISES) -> list[Line]:
    """The lines of an answer's cell with the model answer, from the modules in `folder`."""
    text = (folder / f"lesson_{asked.lesson}.py").read_text(encoding="utf-8")
    tree, skeleton = ast.parse(text), nb.cells[asked.answer].source
    model = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == asked.name)
    body = model.body[ast.get_docstring(model) is not None :]
    if skeleton.startswith(MAGIC):
        return kernels(skeleton, ast.literal_eval(body[-1].value).strip("\n"))
    imports = {line for cell in nb.cells for line in imported(cell.source)}
    before = [line for line in needed(tree, text, model) if line not in imports]
    if answers.kind(model) in ("number", "choice", "labels"):
        value = ast.get_source_segment(text, body[-1].value)
        value = f"({value})" if "\n" in value and value[0] not in "[(" else value
        steps = [ast.get_source_segment(text, each) for each in body[:-1]]
        lines = "\n".join([*before, *steps, f"{asked.variable} = {value}"]).splitlines()
        return [*given(skeleton), *added(lines)]
    lines = text.splitlines()
    inside = lines[body[0].lineno - 1 : model.end_lineno]
    if fits(skeleton, model):
        before += ["", ""] if before else []
        return [*added(before), *given(skeleton), *added(inside)]
    head = [f"@{ast.get_source_segment(text, other)}" for other in model.decorator_list[1:]]
    head += lines[model.lineno - 1 : model.body[0].lineno - 1]
    head = [line.replace(f"def {model.name}(", f"def {asked.variable}(") for line in head]
    return [*given(skeleton), *added(["", "", *before, *head, *inside])]


def given(text: str) -> list[Line]:
    """Lines of a skeleton."""
    return [(line, False) for line in text.splitlines()]


def added(lines: list[str]) -> list[Line]:
    """Lines of a solution."""
    return [(line, True) for line in lines]


def joined(lines: list[Line]) -> str:
    """The source of a solved cell."""
    return "\n".join(line for line, _ in lines)


def fits(skeleton: str, model: ast.FunctionDef) -> bool:
    """Whether a skeleton becomes the model answer by lines below it: same head, and no body yet."""
    [function] = ast.parse(skeleton).body
    empty = all(
        isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in function.body
    )
    heads = [
        (ast.unparse(each.args), [ast.unparse(d) for d in decorators])
        for each, decorators in (
            (function, function.decorator_list),
            (model, model.decorator_list[1:]),
        )
    ]
    return empty and heads[0] == heads[1]


def imported(source: str) -> list[str]:
    """What a cell imports, a line for each name; nothing if it is not plain Python."""
    try:
        nodes = ast.parse(source).body
    except SyntaxError:
        return []
    return [line for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for line in singly(n)]


def singly(node: ast.Import | ast.ImportFrom) -> list[str]:
    """An import as a line for each name."""
    one = (type(node)(**{**vars(node), "names": [name]}) for name in node.names)
    return [ast.unparse(each) for each in one]


def needed(tree: ast.Module, text: str, model: ast.FunctionDef) -> list[str]:
    """What a model answer needs of its module, as lines: imports, helpers, constants."""
    found, names = [], free(model)
    for node in reversed(tree.body):
        exercise = isinstance(node, ast.FunctionDef) and answers.kind(node)
        if exercise or isinstance(node, ast.Expr) or not still_used(node, names):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = [*singly(node), *found]
        else:
            found = [*ast.get_source_segment(text, node).splitlines(), *found]
            names = names | free(node)
    return found


def free(node: ast.stmt) -> set[str]:
    """The names that a definition uses and does not make itself."""
    names = [n for part in body_of(node) for n in ast.walk(part) if isinstance(n, ast.Name)]
    made = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    made |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names} - made


def body_of(node: ast.stmt) -> list[ast.AST]:
    """A statement in parts, without what decorates it as an exercise."""
    return node.body + node.decorator_list[1:] if isinstance(node, ast.FunctionDef) else [node]


# --- CUDA C -------------------------------------------------------------------------------------


def kernels(skeleton: str, model: str) -> list[Line]:
    """A skeleton in CUDA C with the lines of the model answer.

    Where that changes a line, and not only adds some, the skeleton's text is left out by the
    preprocessor, and the whole model answer stands below it.
    """
    magic, *old = skeleton.splitlines()
    lines, new = [(magic, False)], model.splitlines()
    matcher = difflib.SequenceMatcher(None, [*map(bare, old)], [*map(bare, new)], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal" and any(map(bare, old[a:b])):
            unused = [("#if 0", True), *given("\n".join(old)), ("#endif", True)]
            return [(magic, False), *unused, *added(new)]
        lines += given("\n".join(old[a:b])) + (added(new[c:d]) if kind != "equal" else [])
    return lines


def bare(line: str) -> str:
    """A line of C without its comment and the blanks around."""
    return re.sub("//.*", "", line).strip()
