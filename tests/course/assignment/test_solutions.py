"""Solutions only add lines to their skeletons, and are right."""

import ast
import contextlib
import io
import runpy

import pytest

from cnnlab import cuda
from cnnlab.course import answers
from cnnlab.course.assignment.solutions import MAGIC, fits, imported, joined, kernels, solved
from tests.course.assignment.made import LESSONS, lesson

EXERCISES = [
    pytest.param(path, each, id=f"{each.lesson}-{each.name}")
    for path in LESSONS
    for each in lesson(path)[1]
]


@pytest.mark.parametrize("path, asked", EXERCISES)
def test_a_solution_differs_from_its_skeleton_by_added_lines_only(path, asked):
    nb, _ = lesson(path)
    lines = solved(nb, asked)
    skeleton = [line for line, is_added in lines if not is_added]
    assert skeleton == nb.cells[asked.answer].source.splitlines()
    assert any(line.strip() for line, is_added in lines if is_added)


QUICK = "number", "choice", "labels", "formula", "tested"
KERNELS = ("00", "bias_gradient"), ("06", "vector_sigmoid_backward"), ("30", "guard")


@pytest.mark.slow  # imports what lessons import
def test_solutions_are_right():
    """All but kernels, most of which take a while to compile: of those, one of each form."""
    tried = 0
    for path in LESSONS:
        nb, every = lesson(path)
        file = answers.EXERCISES / f"lesson_{every[0].lesson}.py"
        module = runpy.run_path(str(file))
        kinds = {name: kind for name, kind in kinds_of(file).items() if kind in QUICK}
        names = {}
        exec("\n".join(line for cell in nb.cells for line in imported(cell.source)), names)
        for asked in every:
            if asked.name in kinds or (asked.lesson, asked.name) in KERNELS:
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    right = module[asked.name](answer(joined(solved(nb, asked)), asked, names))
                assert right, (asked, said.getvalue())
                tried += 1
    assert tried > 90


def kinds_of(file):
    """The kind of each exercise of a module, by its name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {f.name: answers.kind(f) for f in tree.body if isinstance(f, ast.FunctionDef)}


def answer(source, asked, names):
    """What a cell makes of its variable."""
    if source.startswith(MAGIC):
        return cuda.Kernels(source.partition("\n")[2])
    here = dict(names)
    exec(source, here)
    return here[asked.variable]


def test_a_changed_line_of_cuda_c_leaves_the_skeleton_out():
    assert kernels("%%cuda mine\nint a;\n// yours\nint b;", "int a;\nint c;\nint b;") == [
        ("%%cuda mine", False),
        ("int a;", False),
        ("// yours", False),
        ("int c;", True),
        ("int b;", False),
    ]
    assert kernels("%%cuda mine\nint a = 1;", "int a = 2;") == [
        ("%%cuda mine", False),
        ("#if 0", True),
        ("int a = 1;", False),
        ("#endif", True),
        ("int a = 2;", True),
    ]


def test_only_an_empty_body_under_the_same_head_is_filled_in():
    model = ast.parse("@kinds.kernel('op')\n@njit\ndef model(x): return x").body[0]
    assert fits("@njit\ndef mine(x):\n    ...", model)
    assert not fits("@njit\ndef mine(x):\n    x = 1", model)
    assert not fits("def mine(x):\n    ...", model)
    assert not fits("@njit\ndef mine(y):\n    ...", model)
