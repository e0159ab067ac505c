"""The rules of CONTRIBUTING.md, kept by the source. Nothing here runs a kernel."""

import ast
import json
import os
import re
import subprocess
import sys

import nbformat

from cnnlab.distributed import METHODS
from cnnlab.kernels import KERNELS
from cnnlab.training.optimizers import OPTIMIZERS
from tests.source import (
    FILES,
    NOTEBOOKS,
    PACKAGE,
    ROOT,
    TESTS,
    arrows,
    imported,
    imports,
    module_of,
    room,
    tree,
)

# The rooms from the ground up. What a room imports lies on a lower floor.
FLOORS = (
    ("runtime",),
    ("network", "ranks", "data"),
    ("cuda",),
    ("kernels",),
    ("training", "check"),
    ("distributed",),
    ("measure",),
    ("plots",),
    ("lessons", "course"),
    ("__main__",),
)
FLOOR = {name: number for number, rooms in enumerate(FLOORS) for name in rooms}


def test_at_most_thirteen_names_lie_at_the_top():
    names = {room(name) for name in FILES} - {"", "__main__"}
    assert names | {"__main__"} == FLOOR.keys() and len(names) <= 13


# --- arrows -------------------------------------------------------------------------------------


def test_arrows_between_rooms_point_down():
    climbing = [(a, b) for a, others in arrows().items() for b in others if FLOOR[b] >= FLOOR[a]]
    assert not climbing
    assert {room(other) for other in imports()[""]} == {
        "runtime"
    }  # the package itself is below all


def test_imports_form_no_circle():
    left = dict(imports())
    while ends := [name for name, others in left.items() if not others & left.keys()]:
        for name in ends:
            del left[name]
    assert not left, "these import each other, or something that does"


# How strategies reach ranks and the device; who may import what not every machine has.
DOORS = {"ranks": {"ranks", "ranks.schedules"}, "cuda": {"cuda", "cuda.step"}}
ONLY = {
    "mpi4py": r"ranks\b|distributed\b|check\.collective|kernels\.allreduce|lessons\b",
    "ipyparallel": r"ranks\.cluster",
    "cupy": r"cuda\b",
    "pyopencl": r"lessons\.lesson_66",
    "torch": r"measure\.torch_peer",
    "matplotlib": r"(plots|lessons)\b",
}


def test_strategies_reach_ranks_and_the_device_through_one_door():
    for name in (name for name in FILES if room(name) == "kernels"):
        for behind, door in DOORS.items():
            assert {other for other in imports()[name] if room(other) == behind} <= door, name
    for name, file in FILES.items():
        libraries = {other.partition(".")[0] for other in imported(tree(file))}
        for library in libraries & ONLY.keys():
            assert re.match(ONLY[library], name), f"{name} imports {library}"


# Those that import a module by a text, where an arrow could hide.
LOADERS = {
    "runtime.arguments",  # an entry, which counts as an arrow
    "kernels.contract",  # a strategy, by its name in KERNELS
    "measure.machine",  # Numba's threading layers
    "course.render",  # the setup cell, which has three lines
    "runtime.setup",  # the course, once it has been found
}


def test_modules_are_imported_by_a_text_in_few_places():
    loading = {n for n, f in FILES.items() if re.search("import_module|__import__", f.read_text())}
    assert loading == LOADERS


def test_the_picture_in_contributing_is_true():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = page.partition("in one picture")[2].split("```")[1]
    drawn = re.findall(r"^(\w+)  [^→\n]*(?:→ (.*))?$", picture, re.MULTILINE)
    drawn = {name: set(others.split()) for name, others in drawn}
    assert drawn == {name: others - {"runtime"} for name, others in arrows().items()}
    assert [FLOOR[name] for name in drawn] == sorted(map(FLOOR.get, drawn), reverse=True)


# --- nothing runs at import ---------------------------------------------------------------------

IMPORT_ALL = """
import importlib, json, os, sys
noted = []
def note(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.fork", "socket.connect"):
        if arguments[:1] != ("lscpu",):  # which NumPy 2.1 asks
            noted.append(event)
    elif event == "open" and str(arguments[0]).startswith(DATA):
        noted.append(str(arguments[0]))
sys.addaudithook(note)
for name in NAMES:
    importlib.import_module(name)
import psutil
noted += ["MPI"] * ("mpi4py.MPI" in sys.modules)
noted += ["thread"] * (psutil.Process().num_threads() - 1)
open(sys.argv[1], "w").write(json.dumps(noted))
"""
NEED_MORE = {"cuda.cupy_device", "measure.torch_peer"}  # CuPy and PyTorch, which need not be there


def test_importing_everything_starts_nothing_and_says_nothing(tmp_path):
    names = [f"cnnlab.{name}" for name in FILES if name and name not in NEED_MORE]
    data = str(ROOT / "data"), str(PACKAGE / "data" / "report_tables.toml")
    program = f"NAMES, DATA = {names!r}, {data!r}\n{IMPORT_ALL}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, str(tmp_path / "noted")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((tmp_path / "noted").read_text()) == []


# --- one list of each kind ----------------------------------------------------------------------


def compared(root: ast.AST) -> set:
    """Constants that are compared with something: by ==, by in, or by a case."""
    sides = []
    for node in ast.walk(root):
        if isinstance(node, ast.Compare):
            sides += [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides.append(node.value)
    sides += [e for s in sides if isinstance(s, ast.Tuple | ast.List | ast.Set) for e in s.elts]
    return {side.value for side in sides if isinstance(side, ast.Constant)}


def test_nobody_asks_for_a_strategy_a_method_or_an_optimiser_by_name():
    listed = {*KERNELS, *METHODS, *OPTIMIZERS}
    asked = {name: compared(tree(file)) & listed for name, file in FILES.items()}
    assert not {name: names for name, names in asked.items() if names}


# --- names --------------------------------------------------------------------------------------

# Words that say nothing of what they name, or that are nobody's but ours.
VAGUE = {"of", "its", "told", "found", "thing", "things", "hands", "ways", "dear", "owed"}


def named(root: ast.AST) -> set[str]:
    """The names that a tree binds: variables, arguments, functions, classes, attributes."""
    kinds = ast.FunctionDef | ast.ClassDef
    names = {n.id for n in ast.walk(root) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(root) if isinstance(n, ast.arg)}
    names |= {n.name for n in ast.walk(root) if isinstance(n, kinds)}
    return names | {n.attr for n in ast.walk(root) if isinstance(n, ast.Attribute)}


def test_names_say_what_they_name():
    trees = {
        str(f.relative_to(ROOT)): tree(f) for f in [*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")]
    }
    vague = {name: named(root) & VAGUE for name, root in trees.items()}
    assert not {name: names for name, names in vague.items() if names}


def test_a_class_has_a_name_of_its_own():
    classes = [n.name for f in FILES.values() for n in tree(f).body if isinstance(n, ast.ClassDef)]
    assert not {name for name in classes if classes.count(name) > 1}


# --- what is named is there ---------------------------------------------------------------------


def test_whatever_is_named_is_there():
    """In code, comments, tests, pages and lessons: modules, and what is imported from them."""
    texts = {file: file.read_text("utf-8") for file in [*ROOT.glob("*.md"), *TESTS.rglob("*.py")]}
    texts |= {
        file: file.read_text("utf-8") for file in PACKAGE.rglob("*.*") if file.suffix != ".pyc"
    }
    for file in NOTEBOOKS.glob("*.ipynb"):
        texts[file] = "\n".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
    missing = set()
    for file, text in texts.items():
        names = re.findall(r"\bcnnlab(?:\.(?!zip\b)[a-z]\w*)+(?!\w*[/-])", text)
        for module, what in re.findall(r"\bfrom (cnnlab[\w.]*) import ([\w, ]+)", text):
            names += [f"{module}.{name.split()[0]}" for name in what.split(",")]
        for name in names:
            try:
                module_of(name)
            except AssertionError:
                missing.add((str(file.relative_to(ROOT)), name))
    assert not missing
