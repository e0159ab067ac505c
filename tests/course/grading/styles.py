"""The answers of the key as students write them: in three styles."""

import ast
import re
import textwrap

from cnnlab.course import answers
from cnnlab.course.grading import find

FENCED = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
IMPORTS = """\
import math
from math import inf
import numba as nb, numba
import numpy as np
from numba import njit, prange"""


def key(lesson: str) -> dict[find.Wanted, str]:
    """The model answers of a lesson as cells, with the names that the lesson gives them."""
    texts = (FENCED.match(text).groups() for text in answers.of_lesson(f"{lesson}_"))
    return {
        each: named(each, language, code)
        for each, (language, code) in zip(find.exercises_of(lesson), texts, strict=True)
    }


def named(wanted: find.Wanted, language: str, code: str) -> str:
    """A model answer, named as the lesson asks for it."""
    if language == "cpp":
        return f"%%cuda {wanted.variable}\n{code}"
    tree = ast.parse((answers.EXERCISES / f"lesson_{wanted.lesson}.py").read_text("utf-8"))
    helpers = [f for f in tree.body if isinstance(f, ast.FunctionDef) and not f.decorator_list]
    code = re.sub(rf"\bdef {wanted.name}\b", f"def {wanted.variable}", code)
    code = re.sub(rf"^{wanted.name} = ", f"{wanted.variable} = ", code, flags=re.MULTILINE)
    tree = ast.parse(code)
    if isinstance(tree.body[0], ast.FunctionDef) and not tree.body[0].args.args:
        if (
            isinstance(returned := tree.body[0].body[-1], ast.Return)
            and len(tree.body[0].body) == 1
        ):
            if isinstance(returned.value, ast.List):  # labels: the answer is the list
                return f"{wanted.variable} = {ast.unparse(returned.value)}"
    return "\n".join([ast.unparse(f) for f in helpers if f"{f.name}(" in code] + [code])


def as_in_the_key(wanted: find.Wanted, code: str) -> list[str]:
    """Just so, and checked in the same cell."""
    if code.startswith("%%"):
        return [code, f"exercise.{wanted.name}({wanted.variable});"]
    return [f"{code}\n\nexercise.{wanted.name}({wanted.variable});"]


def in_pieces(wanted: find.Wanted, code: str) -> list[str]:
    """A first try, imports of one's own, another name first, magics, and no check."""
    if code.startswith("%%"):
        return [code, f"exercise.{wanted.name}({wanted.variable})"]
    name = wanted.variable
    mine = re.sub(rf"(^|\bdef ){name}\b", rf"\1attempt_at_{wanted.name}", code, flags=re.MULTILINE)
    first = f"{wanted.variable} = ...\nexercise.{wanted.name}({wanted.variable})"
    last = f"{wanted.variable} = attempt_at_{wanted.name}"
    return [first, f"%%time\n{IMPORTS}\n{mine}", f"%pip list\n{last}",
            f"exercise.{wanted.name}({wanted.variable})"]  # fmt: skip


def retold(wanted: find.Wanted, code: str) -> list[str]:
    """Longer: with a docstring, comments, hints of types and printed lines, tabs for spaces."""
    if code.startswith("%%"):
        return [code.replace("{\n", "{  // begins\n"), f"exercise.{wanted.name}({wanted.variable})"]
    tree = ast.parse(code)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            compiled = bool(node.decorator_list)
            node.body.insert(0, ast.parse('"""What I think."""').body[0])
            if not compiled:
                node.returns = ast.parse("object", mode="eval").body
                node.body.insert(1, ast.parse("print('called', end=' ')").body[0])
    text = ast.unparse(ast.fix_missing_locations(tree))
    text = text.replace("njit\n", "njit(cache=True)\n").replace("    ", "\t")
    told = f"# Größe – this took me an hour\n{text}  # at last"
    return [f"{IMPORTS}\nprint('hello')", told, f"exercise.{wanted.name}({wanted.variable});"]


STYLES = as_in_the_key, in_pieces, retold


def written(lesson: str, turn: int) -> list[str]:
    """The cells of a lesson's answers, each exercise in the next style."""
    cells = []
    for k, (wanted, code) in enumerate(key(lesson).items()):
        cells += map(textwrap.dedent, STYLES[(k + turn) % len(STYLES)](wanted, code))
    return cells
