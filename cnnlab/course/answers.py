"""The model answers of a lesson, folded away at its end: "one way to do it".

They are read from the source of `cnnlab/lessons`, which is not imported for it: the functions whose
first decorator is `kinds.…`. What else a lesson's file defines is no answer.
"""

import ast
from pathlib import Path

from cnnlab.course import parts

EXERCISES = Path(__file__).resolve().parents[1] / "lessons"
HEADING = "## One way to do it\n\nFor when you have tried. Each opens with a click."
FOLDED = "<details>\n<summary>Exercise {number}</summary>\n\n{text}\n\n</details>"


def folded(name: str) -> str:
    """The markdown that folds away each model answer of a lesson; ValueError if it has none."""
    answers = of_lesson(name)
    if not answers:
        file = f"cnnlab/lessons/lesson_{parts.number(name)}.py"
        raise ValueError(f"answers: expected exercises in {file}, got none")
    folds = (FOLDED.format(number=n, text=text) for n, text in enumerate(answers, start=1))
    return "\n\n".join([HEADING, *folds])


def of_lesson(name: str) -> list[str]:
    """The model answers of a lesson as markdown, in order; none if it has no file of exercises."""
    text = own_file(name)
    return [shown(text, function) for function in exercises(text)]


def own_file(name: str) -> str:
    """The text of a lesson's file in the package; empty if it has none."""
    file = EXERCISES / f"lesson_{parts.number(name)}.py"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def exercises(text: str) -> list[ast.FunctionDef]:
    """The functions of a lesson's file that answer an exercise, in order."""
    return [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and kind(n)]


def kind(function: ast.FunctionDef) -> str | None:
    """The kind of exercise that a function answers, such as "kernel"; None if it answers none."""
    first = function.decorator_list[0] if function.decorator_list else None
    called = ast.unparse(first.func) if isinstance(first, ast.Call) else ""
    return called.removeprefix("kinds.") if called.startswith("kinds.") else None


def shown(text: str, function: ast.FunctionDef) -> str:
    """A model answer as markdown: its code, or its value, and its docstring as text below."""
    why = " ".join((ast.get_docstring(function) or "").split())
    body = function.body[bool(why) :]
    lines, language = text.splitlines(), "python"
    if kind(function) == "cuda_c":
        code, language = ast.literal_eval(body[-1].value).strip("\n"), "cpp"
    elif kind(function) in ("number", "choice"):
        before = [ast.get_source_segment(text, each) for each in body[:-1]]
        last = ast.get_source_segment(text, body[-1].value)
        last = f"{function.name} = " + (f"({last})" if "\n" in last else last)
        code = "\n".join([*before, last])
    else:
        others = function.decorator_list[1:]
        head = [f"@{ast.get_source_segment(text, other)}" for other in others]
        head += lines[function.lineno - 1 : function.body[0].lineno - 1]
        code = "\n".join([*head, *lines[body[0].lineno - 1 : function.end_lineno]])
    return f"```{language}\n{code}\n```" + (f"\n\n{why}" if why else "")
