"""What a lesson's cells define is what it proves: a broken kernel makes a later cell fail."""

import ast
import builtins
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import v4

from tests.lessons import breaking, needs
from tests.lessons.equivalent import EQUIVALENT
from tests.lessons.mutants import mutants

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(breaking.NOTEBOOKS.glob("*.ipynb"))
read = functools.cache(breaking.read)


@pytest.fixture
def run(monkeypatch, capfd):
    """Break lessons, each in a fork: a function that returns the exit status and the output."""
    monkeypatch.setattr(breaking, "prepare", lambda n_lessons: None)

    def broken(*arguments: str) -> tuple[int, str]:
        return breaking.main(list(arguments)), capfd.readouterr().out

    return broken


def number(path: Path) -> str:
    """The number of a lesson, such as "00b"."""
    return path.stem.partition("_")[0]


def test_each_lesson_has_cells_with_matter():
    untagged = [number(path) for path in LESSONS if not breaking.matter(read(path))]
    assert not untagged, "tag the cells that hold matter: `matter`"


@pytest.mark.slow
def test_one_mutant_of_each_lesson_is_noticed():
    command = [sys.executable, "-m", "tests.lessons.breaking", "--one", "--jobs", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 1 mutants, 0 gaps") == len(LESSONS)


@pytest.mark.parametrize("path", LESSONS, ids=number)
def test_whatever_a_cell_with_matter_defines_is_used_below(path):
    assert not breaking.unused(read(path))


KERNEL = re.compile(r"@(numba\.)?njit|comm\.[SRIsrAB]\w+\(")  # or a program of ranks


def lacking(each: needs.Cell) -> set[str]:
    """The names that the functions of a cell need from elsewhere, and no comment in it names."""
    tree = ast.parse(TransformerManager().transform_cell(each.source.removeprefix("%%px")))
    made = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    uses = needs.names("\n".join(map(ast.unparse, made)))[1]
    said = set(re.findall(r"\w+", " ".join(re.findall("#.*", each.source))))
    return uses - each.binds - said - {"np", "numba", "njit", "prange", "comm"} - set(dir(builtins))


@pytest.mark.parametrize("path", LESSONS, ids=number)
def test_a_kernel_stands_alone_or_names_what_it_needs(path):
    kernels = [c for c in read(path) if KERNEL.search(c.source)]
    cells = [c for c in kernels if "matter" in c.tags and not c.source.startswith("%%cuda")]
    assert not [lacking(each) for each in cells if lacking(each)]


def test_what_a_kernel_lacks():
    source = "{}\n@numba.njit\ndef f(x, n=M):\n    return g(x) + np.sum(h) + len(x)\nh = 1"
    for said, names in (("", {"M", "g"}), ("# needs M", {"g"}), ("# M and g", set())):
        assert lacking(needs.cell(source.format(said), (), str)) == names


def test_listed_mutants_are_there_and_have_a_reason():
    there = {
        (path.stem, *mutant.key)
        for path in LESSONS
        if path.stem in {key[0] for key in EQUIVALENT}
        for cell in read(path)
        if "matter" in cell.tags
        for mutant in mutants(cell.source)
    }
    assert EQUIVALENT.keys() <= there, "these mutants are gone"
    assert all(len(reason) > 20 for reason in EQUIVALENT.values())


# --- toys ---------------------------------------------------------------------------------------

DEFINE = """
def total(values):
    found = 0
    for value in values:
        found += value
    return found
"""


def lesson(folder: Path, *cells: str | tuple[str, str], name: str = "toy") -> str:
    """A notebook of code cells, each a source or a source and its tag, as a file."""
    made = []
    for each in cells:
        source, *tags = (each,) if isinstance(each, str) else each
        made.append(v4.new_code_cell(source.strip("\n"), metadata={"tags": tags}))
    path = folder / f"{name}.ipynb"
    nbformat.write(v4.new_notebook(cells=made), path)
    return str(path)


def test_a_proof_that_proves_notices_every_mutant(tmp_path, run):
    status, output = run(lesson(tmp_path, (DEFINE, "matter"), "assert total([1, 2, 4]) == 7"))
    assert (status, output) == (0, "toy: 2 mutants, 0 gaps\n")


def test_a_proof_that_proves_too_little_is_reported(tmp_path, run):
    status, output = run(lesson(tmp_path, (DEFINE, "matter"), "assert total([0, 0, 1]) == 1"))
    assert status == 1
    gap = "toy: nobody notices: total: `found += value` → `found = value`"
    assert output.splitlines() == [gap, "toy: 2 mutants, 1 gaps"]


def test_what_only_a_copy_proves_is_reported(tmp_path, run):
    cells = ["import math", (DEFINE, "matter"), "assert math.fsum([1, 2]) == 3", "print(total)"]
    status, output = run(lesson(tmp_path, *cells))
    assert status == 1 and output.count("nobody notices") == 2
    status, output = run(lesson(tmp_path, *cells[:3]))
    assert "no later cell uses total" in output and status == 1


def test_only_the_cells_that_are_needed_run(tmp_path, run):
    cells = [
        "numbers = [1]\nother = 3",
        "raise RuntimeError('needed by nobody')",
        "numbers.append(2)",
        (DEFINE, "matter"),
        "expected = sum(numbers)",
        "total([])\nother = 1 / 0 if other == 4 else 3",
        "assert total(numbers) == expected",
    ]
    status, output = run(lesson(tmp_path, *cells))
    assert (status, output) == (0, "toy: 2 mutants, 0 gaps\n")


def test_a_lesson_that_fails_as_it_is_proves_nothing(tmp_path, run):
    status, output = run(lesson(tmp_path, (DEFINE, "matter"), "assert total([1]) == 2"))
    assert status == 1 and "toy, as it is: AssertionError" in output


def test_a_fourth_cell_that_uses_it_comes_too_late(tmp_path, run):
    late = ["assert total([1]) == 1"] * 3 + ["assert total([1, 2]) == 3"]
    assert run(lesson(tmp_path, (DEFINE, "matter"), *late))[0] == 1


def test_cells_that_assert_come_before_those_that_only_show(tmp_path, run):
    late = ["total([1])"] * 3 + ["both = [total([1, 2])]", "assert both == [3]"]
    status, output = run(lesson(tmp_path, (DEFINE, "matter"), *late))
    assert status == 0 and "0 gaps" in output


def test_what_other_matter_uses_is_proved_by_that(tmp_path, run):
    twice = "def twice(values):\n    return [total(values)] * 2", "matter"
    late = ["total([1])", "twice([1])", "assert twice([1, 2]) == [3, 3]"]
    status, output = run(lesson(tmp_path, (DEFINE, "matter"), twice, *late))
    assert status == 0 and "0 gaps" in output


def test_a_crash_and_an_end_that_never_comes_are_noticed(tmp_path, run):
    crash = "def check(n):\n    if n != 2:\n        import ctypes; ctypes.string_at(0)"
    cells = ("def two(a):\n    return a + 1", "matter"), crash, "check(two(1))"
    status, output = run(lesson(tmp_path, *cells), "--verbose")
    assert "crashes with signal 11" in output and status == 0
    endless = "def down(n):\n    while n > 0:\n        n -= 1\n    return n", "matter"
    status, output = run(
        lesson(tmp_path, endless, "assert down(5) == 0"), "--verbose", "--patience", "3"
    )
    assert "`n -= 1` → `n += 1`: never ends" in output
    assert "`while n > 0:` → `while n >= 0:`: AssertionError" in output


def test_a_mutant_that_changes_nothing_is_listed_and_must_not(tmp_path, run, monkeypatch):
    source = "def last(a):\n    found = 0\n    for i in a:\n        found = i + 0\n    return found"
    path = lesson(tmp_path, (source, "matter"), "assert last([3]) == 3")
    change = ("last", "found = i + 0", "found = i - 0", 0)
    assert "nobody notices: last: `found = i + 0` → `found = i - 0`" in run(path)[1]
    for key, code, said in (
        (("toy", *change), 0, "toy: 1 mutants, 0 gaps"),
        (("other", *change), 1, "nobody notices"),
    ):
        with monkeypatch.context() as listed:
            listed.setitem(EQUIVALENT, key, "x")
            status, output = run(path)
        assert status == code and said in output


def test_the_mutants_of_python():
    source = "%%px\nclass A:\n    def f(self, n):\n        'x - 1'\n        for i in range(1, n):\n"
    source += "            comm.Send(i)\n        if not n < 3:\n            raise ValueError(n - 1)"
    assert [str(mutant) for mutant in mutants(source)] == [
        "A: `for i in range(1, n):` → `for i in range(1, n - 1):`",
        "A: `comm.Send(i)` → `nothing`",
        "A: `if not n < 3:` → `if not not n < 3:`",
        "A: `if not n < 3:` → `if not n <= 3:`",
    ]
    assert all(mutant.source.startswith("%%px\nclass A") for mutant in mutants(source))
    twice = mutants("def f(a):\n    a[0] = 1\n    a[0] = 1")
    assert [mutant.key[1:] for mutant in twice] == [("a[0] = 1", "", 0), ("a[0] = 1", "", 1)]


def test_the_mutants_of_cuda_c():
    source = '%%cuda add\nextern "C" __global__ void add(float* a, int n) {\n'
    source += "    if (i < n) a[i] += b[i];  // i + 1\n    __syncthreads();\n}"
    assert [(mutant.before, mutant.after) for mutant in mutants(source)] == [
        ("if (i < n) a[i] += b[i];", "if (i < n) a[i] = b[i];"),
        ("if (i < n) a[i] += b[i];", "if (i <= n) a[i] += b[i];"),
        ("__syncthreads();", ";"),
    ]
