"""Answers that are alike but for names, layout and comments: pointed out, and not judged."""

import ast
import hashlib
import itertools
import re
from collections.abc import Iterable

from cnnlab.course.grading.find import Answer

LEAST = 12  # nodes of code: what is shorter, all write alike
WORDS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")


def normal(answer: Answer) -> str:
    """A digest of an answer's code that names and layout do not change; "" if it is too short."""
    names: dict[str, str] = {}
    if answer.cuda is not None:
        words = WORDS.findall(re.sub(r"//[^\n]*|/\*.*?\*/", " ", answer.cuda, flags=re.DOTALL))
        named = [numbered(names, w) if w[0].isalpha() or w[0] == "_" else w for w in words]
        text, size = " ".join(named), len(words)
    else:
        tree = ast.parse(answer.code)
        tree.body = [s for s in tree.body if not isinstance(s, ast.Import | ast.ImportFrom)]
        for node in ast.walk(tree):
            plain(node)
        nodes = list(ast.walk(tree))
        for node in nodes:
            for field in ("id", "arg", "name"):
                if isinstance(name := getattr(node, field, None), str):
                    setattr(node, field, numbered(names, name))
        text, size = ast.dump(tree), len(nodes)
    return hashlib.sha256(text.encode()).hexdigest()[:16] if size >= LEAST else ""


def numbered(names: dict[str, str], name: str) -> str:
    """The number of a name, in the order in which they come."""
    return names.setdefault(name, f"n{len(names)}")


def plain(node: ast.AST) -> None:
    """Take the hints of types and the docstring from a node."""
    for field in ("annotation", "returns", "type_comment"):
        if hasattr(node, field):
            setattr(node, field, None)
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
        node.body = node.body[1:] or [ast.Pass()]


def alike(results: Iterable[dict]) -> list[dict]:
    """The answers that several students have alike: the exercise, and who; rare ones first.

    What more than half of the class has alike is how one writes it, and is left out.
    """
    results = list(results)
    rows = sorted(
        (row["lesson"], row["name"], row["shape"], result["student"])
        for result in results
        for row in result["exercises"]
        if row["shape"]
    )
    found = []
    for (lesson, name, _), group in itertools.groupby(rows, key=lambda one: one[:3]):
        who = [one[3] for one in group]
        if 1 < len(who) <= max(2, len(results) // 2):
            found.append({"lesson": lesson, "name": name, "students": who})
    return sorted(found, key=lambda one: len(one["students"]))
