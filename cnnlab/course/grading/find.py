"""Find the answers of a student by their names in the code, and what each of them needs."""

import ast
import builtins
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cnnlab.course.grading.notebook import STAR, Notebook, Statement, read
from cnnlab.course.parts import NOTEBOOKS

LESSON = re.compile(r"lesson_(\w+)\b")
SUFFIXES = ".ipynb", ".py"
ARCHIVES = ".zip", ".gz", ".7z", ".rar"
# What every lesson or solution imports: a deleted cell with nothing else costs no points.
COMMON = {"np": "import numpy as np", "numba": "import numba", "math": "import math"}


@dataclass(frozen=True)
class Wanted:
    """An exercise, and the name that the lesson gives its answer."""

    lesson: str
    name: str
    variable: str
    points: float


@dataclass(frozen=True)
class Answer:
    """The code that makes an answer, and the expression that is it; or CUDA C."""

    code: str
    expression: str
    cuda: str | None = None
    note: str = ""

    @property
    def empty(self) -> bool:
        """Whether it is still to be given: ..., None, or a function whose body is no more."""
        if self.cuda is not None:
            return False
        body = ast.parse(self.code).body
        return is_open(ast.parse(self.expression, mode="eval").body, body)


def lesson_file(lesson: str, folder: Path = NOTEBOOKS) -> Path | None:
    """The notebook of a lesson as the course has it; None where that is not installed."""
    return next(iter(sorted(folder.glob(f"{lesson}_*.ipynb"))), None)


@functools.cache
def original(lesson: str) -> Notebook:
    """The lesson as the course has it, in statements; empty where it is not installed."""
    path = lesson_file(lesson)
    return read(path) if path else Notebook(Path(), [], [])


def exercises_of(lesson: str) -> list[Wanted]:
    """The exercises of a lesson with the names of their answers, a point for each ●."""
    path = lesson_file(lesson)
    if path is None:
        raise ValueError(f"lesson: expected one in {NOTEBOOKS}, got {lesson!r}")
    marks = re.findall(r"\*\*\d+ (●+)", path.read_text(encoding="utf-8"))
    calls = [call for each in original(lesson).statements for call in checks(each)]
    found = {name: ast.unparse(argument) for name, argument in calls}
    if len(marks) != len(found):
        raise ValueError(f"lesson {lesson}: expected a check for each ●, got {len(found)} checks")
    return [
        Wanted(lesson, name, variable, len(mark))
        for (name, variable), mark in zip(found.items(), marks, strict=True)
    ]


def checks(statement: Statement, name: str | None = None) -> list[tuple[str, ast.expr]]:
    """The checks in a statement, `exercise.name(answer)`: the exercise, and what is checked."""
    if not isinstance(statement.node, ast.Expr | ast.Assign):
        return []
    return [
        (call.func.attr, call.args[0])
        for call in ast.walk(statement.node)
        if isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        if call.func.value.id.startswith(("exercise", "lesson_"))
        if name in (None, call.func.attr)
    ]


def files_of(path: Path) -> list[Path]:
    """All that lies in a folder, in order; or the one file."""
    return sorted(path.rglob("*")) if path.is_dir() else [path]


def submitted(path: Path) -> list[Notebook]:
    """What a student has handed in: the notebooks of a folder, or one."""
    files = files_of(path)
    hidden = [f for f in files if any(p.startswith(".") for p in f.relative_to(path).parts)]
    return [read(f) for f in files if f.suffix in SUFFIXES and f not in hidden and f.is_file()]


def of_lesson(lesson: str, wanted: Sequence[Wanted], handed_in: Sequence[Notebook]):
    """The notebook that answers a lesson: that which names it, or else has most of its answers.

    Of several, as of a lesson and a copy of it, that in which most is answered.
    """

    def fits(notebook: Notebook) -> tuple:
        named, called = names(notebook, lesson), is_called(notebook, lesson)
        defined = frozenset().union(*(each.defines for each in notebook.statements))
        others = LESSON.findall(notebook.text) and not named
        given = (answer_to(each, wanted, notebook) for each in wanted)
        answered = sum(answer is not None and not answer.empty for answer in given)
        known = len(defined & {each.variable for each in wanted})
        return (not others, named, called, answered, known)

    if not handed_in:
        return None
    best = max(handed_in, key=fits)
    of_no_other, *signs = fits(best)
    return best if of_no_other and any(signs) else None


def names(notebook: Notebook, lesson: str) -> bool:
    """Whether a notebook imports the exercises of a lesson."""
    return lesson in LESSON.findall(notebook.text)


def is_called(notebook: Notebook, lesson: str) -> bool:
    """Whether the name of a file begins with the number of a lesson."""
    return re.match(rf"{lesson}(?![0-9a-z])", notebook.path.name) is not None


def claims(notebook: Notebook, lesson: str) -> bool:
    """Whether a notebook says that it answers a lesson."""
    return names(notebook, lesson) or is_called(notebook, lesson)


def answer_to(asked: Wanted, wanted: Sequence[Wanted], notebook: Notebook) -> Answer | None:
    """The answer to an exercise: what its check is given, or, without a check, what has its name.

    `wanted` are all exercises of the lesson, in order: several may share a name, and then the check
    says which is meant, or else the order. None if there is none.
    """
    lines = notebook.statements
    at = [k for k, each in enumerate(lines) if checks(each, asked.name)]
    if at:
        expression = checks(lines[at[-1]], asked.name)[-1][1]
        until = at[-1]
    else:
        expression, until = ast.parse(asked.variable, mode="eval").body, len(lines)
        sharing = [each for each in wanted if each.variable == asked.variable]
        places = [k for k, each in enumerate(lines) if asked.variable in each.defines]
        if not places:
            return None
        if len(sharing) > 1:
            if len(places) != len(sharing):
                return None
            until = places[sharing.index(asked)] + 1
    return sliced(expression, lines, until, asked, wanted)


def sliced(
    expression: ast.expr, lines: Sequence[Statement], until: int, asked: Wanted, wanted: Sequence
) -> Answer | None:
    """An expression, with the statements that it needs of those before `until`, and no others.

    What the student has deleted comes from the lesson.
    """
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    own = {k: each for k, each in enumerate(lines) if not checks(each)}
    chosen: set[int] = set()
    from_lesson: set[int] = set()
    common: set[str] = set()
    todo, seen = sorted(names), set(names)
    while todo:
        name = todo.pop()
        places = [k for k, each in own.items() if name in each.defines and k < until]
        places = lasting(name, own, places or [k for k, e in own.items() if name in e.defines])
        uses = [own[k].uses for k in places]
        chosen |= {*places}
        if not places and name in names and name == asked.variable:
            return None
        if not places and not hasattr(builtins, name):
            rest = original(asked.lesson).statements
            found = [k for k, each in enumerate(rest) if name in each.defines and not checks(each)]
            found = lasting(name, rest, found)
            common |= {COMMON[name]} if not found and name in COMMON else set()
            from_lesson |= {*found}
            chosen |= {k for k, each in own.items() if STAR in each.defines}
            uses = [rest[k].uses for k in found]
        for more in sorted(frozenset().union(*uses) - seen):
            seen.add(more)
            todo.append(more)
    rest = original(asked.lesson).statements
    mine = [own[k] for k in sorted(chosen)]
    parts = [rest[k] for k in sorted(from_lesson)] + mine
    code = [*sorted(common), *(narrowed(e, seen) for e in parts if e.node is not None)]
    text = ast.unparse(expression)
    count = sum(text in each.defines for each in own.values())
    shared = sum(text == each.variable for each in wanted)
    note = f"{text} is defined {count} times: the last one counts" if count > shared else ""
    last = next((each for each in reversed(mine) if text in each.defines), None)
    if last is not None and last.node is None:
        return Answer("", text, last.code, note)
    return Answer("\n".join(code), text, None, note)


def lasting(name: str, lines, places: list[int]) -> list[int]:
    """Of the statements that give a name a value, those from the last that sets all of it."""
    for k in reversed(places):
        node = lines[k].node
        whole = ast.FunctionDef | ast.ClassDef | ast.ImportFrom
        if node is None or isinstance(node, whole):
            return places[places.index(k) :]
        plain = isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)
        if plain and name not in lines[k].uses:
            return places[places.index(k) :]
    return places


def narrowed(statement: Statement, names: set[str]) -> str:
    """The code of a statement; of an import, only what is needed."""
    node = statement.node
    if not isinstance(node, ast.Import | ast.ImportFrom) or STAR in statement.defines:
        return statement.code
    kept = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in names]
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(kept))
    return ast.unparse(ast.ImportFrom(node.module, kept, node.level))


def is_open(node: ast.expr, body: Sequence[ast.stmt]) -> bool:
    """Whether an expression is ..., None, a list of these, or the name of what is no more."""
    if isinstance(node, ast.Constant):
        return node.value is None or node.value is ...
    if isinstance(node, ast.List):
        return bool(node.elts) and all(is_open(each, body) for each in node.elts)
    if not isinstance(node, ast.Name):
        return False
    for each in reversed(body):
        if isinstance(each, ast.FunctionDef) and each.name == node.id:
            return all(isinstance(s, ast.Pass) or is_told(s) for s in each.body)
        if isinstance(each, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == node.id for target in each.targets
        ):
            return is_open(each.value, ())
    return False


def is_told(statement: ast.stmt) -> bool:
    """Whether a statement is a constant, such as ... or a docstring, or returns None."""
    if isinstance(statement, ast.Return):
        return statement.value is None or is_open(statement.value, ())
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
