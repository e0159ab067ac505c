"""The exercises of a lesson without their answers: what students get as `lesson_NN.py`.

The model answers go, and what only they use. Numbers, words and formulas are sealed, see
`cnnlab.check.sealed`. A test that tells the answer gives way to recorded examples.
"""

import ast
import copy
import inspect
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from cnnlab.check import sealed
from cnnlab.check.kinds import Exercise
from cnnlab.course import answers

DRAWS = 30  # of the numbers that a formula is tried on
EXAMPLES = 30  # of calls, at most


def without_answers(file: Path) -> str:
    """The source of a module of exercises, such as lesson_05.py, without the answers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = runpy.run_path(str(file))
    body = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and answers.kind(node):
            body += emptied(node, names, f"{file.stem}/{node.name}")
        else:
            body.append(node)
    docstring, *rest = body
    tree.body = [docstring, *ast.parse("from cnnlab.check import sealed").body, *rest]
    return ast.unparse(pruned(tree)) + "\n"


def emptied(function: ast.FunctionDef, names: dict, salt: str) -> Iterator[ast.stmt]:
    """Yield what takes the place of a model answer; `names` are those of its module.

    Its hints stay, and its options, but for `tells`.
    """
    exercise: Exercise = names[function.name]
    kind, asked = answers.kind(function), function.decorator_list[0]
    options = {option.arg: option.value for option in asked.keywords}
    rtol = ast.literal_eval(options["rtol"]) if "rtol" in options else 1e-6
    body = "..."
    if kind == "number":
        body = f"return sealed.{sealed.number(salt, exercise.model(), rtol)}"
    elif kind in ("choice", "labels"):
        words = exercise.model()
        words = [words] if isinstance(words, str) else words
        seals = (f"sealed.{sealed.word(f'{salt}/{k}', word)}" for k, word in enumerate(words))
        body = f"return [{', '.join(seals)}]"
    elif kind == "formula":
        table = f"{function.name}_table"
        draw = eval(compile(ast.Expression(asked.args[0]), "draw", "eval"), names)
        yield parsed(f"{table} = sealed.Table({rows(exercise.model(), draw, rtol, salt)})")
        asked.args[0] = parsed(f"{table}.draw").value
        function.args = parsed("lambda **given: 0").value.args
        body = f"return {table}.of(given)"
    elif "tells" in options:
        asked.args[0] = parsed(f"sealed.examples({recorded(exercise)})").value
        asked.keywords = [option for option in asked.keywords if option.arg != "tells"]
    function.decorator_list, function.body = [asked], ast.parse(body).body
    yield function


def parsed(source: str) -> ast.stmt:
    """The only statement of a source."""
    return ast.parse(source).body[0]


def rows(model: Callable, draw: Callable, rtol: float, salt: str) -> str:
    """The rows of a `sealed.Table`, as source: arguments, and what the model makes of them."""
    rng, found = np.random.default_rng(0), []
    for k in range(DRAWS):
        given = draw(rng)
        found.append(f"({given}, sealed.{sealed.number(f'{salt}/{k}', model(**given), rtol)})")
    return f"[{', '.join(found)}]"


def recorded(exercise: Exercise) -> list[tuple]:
    """The calls of its model answer by its test, as `sealed.examples` takes them: some of them.

    What the test draws by chance it draws here from 0, so that the same is recorded each time.
    """
    model, calls = exercise.model(), []

    def recorder(*given, **by_name):
        given = list(inspect.signature(model).bind(*given, **by_name).args)
        given = [sealed.Recorded([], part) if callable(part) else part for part in given]
        before = [part if callable(part) else copy.deepcopy(part) for part in given]
        returned = model(*given)
        calls.append((before, *copy.deepcopy((given, returned))))
        return returned

    drawn = np.random.default_rng
    with mock.patch.object(np.random, "default_rng", lambda seed=0: drawn(seed)):
        verdict = exercise.verdict(recorder)
    if not verdict:
        raise ValueError(
            f"{exercise.name}: expected a test that accepts the model answer: {verdict}"
        )
    some = np.sort(drawn(0).permutation(len(calls))[:EXAMPLES])  # not every nth: tests go in turns
    return [tuple(map(sealed.written, calls[k])) for k in some]


def pruned(tree: ast.Module) -> ast.Module:
    """A module without the definitions and imports that nothing in it uses."""
    while True:
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        kept = [node for node in tree.body if still_used(node, used)]
        if len(kept) == len(tree.body):
            return tree
        tree.body = kept


def still_used(node: ast.stmt, used: set[str]) -> bool:
    """Whether a statement is an exercise, or defines or imports one of the names in `used`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        node.names = [n for n in node.names if (n.asname or n.name.partition(".")[0]) in used]
        return bool(node.names)
    if isinstance(node, ast.Assign):
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        return any(n.id in used for n in names if isinstance(n.ctx, ast.Store))
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return bool(isinstance(node, ast.FunctionDef) and answers.kind(node)) or node.name in used
    return True
