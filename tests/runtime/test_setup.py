"""The setup cell in folders of every kind, with toy packages, and a pip that only unpacks."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cnnlab.course import render
from cnnlab.runtime import setup

ROOT = Path(__file__).resolve().parents[2]
CELL = render.setup_source(None, [])
WHEEL = "cnnlab-9.9-py3-none-any.whl"
CUT_SHORT = b"PK, and then the network failed"
INSTALLING = "installing cnnlab, once: a minute or so\n"
PIP = """
import json, os, sys, zipfile
*options, what = sys.argv[1:]
kept = open(options[options.index("--constraint") + 1]).read().split()
with open(os.environ["ASKED"], "a") as asked:
    asked.write(json.dumps([kept, os.path.basename(what)]) + "\\n")
if os.environ["FAILS"] in what:
    sys.exit("ERROR: No wheel for this system.\\nsome advice")
zipfile.ZipFile(what.removesuffix("[mpi]")).extractall(os.path.dirname(__file__))
"""


def package(folder, version):
    """A toy cnnlab in a folder, with the true module that finds it."""
    (folder / "cnnlab" / "runtime").mkdir(parents=True)
    for name in ("__init__.py", "thread_pool.py"):
        (folder / "cnnlab" / "runtime" / name).touch()
    (folder / "cnnlab" / "__init__.py").write_text(f"__version__ = {version!r}")
    shutil.copy(setup.__file__, folder / "cnnlab" / "runtime")


def packed(file, folder, *more):
    """The files of a folder as a zip, with its folders; and further files at its top."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
        for path in more:
            archive.write(path, path.name)


@pytest.fixture
def world(tmp_path):
    """A folder with `course/lessons`, where the cell runs, `site`, where pip installs, and toys."""
    for name in ("course/lessons", "site", "toys/setup/cnnlab/runtime", "toys/wheel"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "site" / "pip.py").write_text(PIP)
    package(tmp_path / "toys" / "wheel", "of the wheel")
    packed(tmp_path / "toys" / WHEEL, tmp_path / "toys" / "wheel")
    shutil.copy(setup.__file__, tmp_path / "toys" / "setup" / "cnnlab" / "runtime")
    packed(tmp_path / "toys" / "cnnlab.zip", tmp_path / "toys/setup", tmp_path / "toys" / WHEEL)
    return tmp_path


def run(world, cell=CELL, fails="nothing", **more):
    """Run the cell in a Python without any other package; its status, output and errors."""
    environment = {"PYTHONPATH": str(world / "site"), "FAILS": fails, "ASKED": str(world / "asked")}
    environment |= more
    done = subprocess.run(
        [sys.executable, "-S", "-c", cell],
        cwd=world / "course" / "lessons", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def asked(world):
    """What pip was asked to install, with the versions that it had to keep."""
    file = world / "asked"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_where_there_is_nothing_the_cell_says_one_sentence(world):
    for folder in ("cnnlab", "lessons/cnnlab"):  # of somebody else
        (world / "course" / folder).mkdir(parents=True)
    (world / "course" / "cnnlab.zip").write_bytes(CUT_SHORT)
    assert run(world) == (1, "", f"{render.OTHERWISE}\n")
    assert len(render.OTHERWISE.split(". ")) == 1 and asked(world) == []


@pytest.mark.parametrize("clone", ["course", "course/lessons", "course/cnnlab-main"])
def test_a_clone_comes_before_what_is_installed(world, clone):
    package(world / "site", "installed")
    package(world / clone, "of the clone")
    (world / "course" / WHEEL).touch()
    assert run(world) == (0, "cnnlab of the clone\n", "")


def test_what_is_installed_comes_before_a_wheel(world):
    package(world / "site", "installed")
    shutil.copy(world / "toys" / WHEEL, world / "course")
    assert run(world) == (0, "cnnlab installed\n", "") and asked(world) == []


@pytest.mark.parametrize("place", ["course", "course/lessons"])
@pytest.mark.parametrize("file", [WHEEL, "cnnlab.zip"])
def test_a_wheel_or_zip_is_installed_once(world, file, place):
    shutil.copy(world / "toys" / file, world / place)
    look = "\nprint([path for path in sys.path if 'cnnlab' in path or path[:1] == '.'])"
    assert run(world, CELL + look) == (0, INSTALLING + "cnnlab of the wheel\n[]\n", "")
    assert asked(world) == [[[], f"{WHEEL}[mpi]"]]
    assert run(world) == (0, "cnnlab of the wheel\n", "") and len(asked(world)) == 1
    assert [path.name for path in (world / place).iterdir() if path.is_file()] == [file]


def test_pip_keeps_every_version_that_is_there(world):
    shutil.copy(world / "toys" / WHEEL, world / "course")
    for name, version in (("numpy", "2.1.0"), ("torch", "2.6.0+cu124"), ("odd", "of today")):
        folder = world / "site" / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    assert run(world)[0] == 0
    assert asked(world) == [[["numpy==2.1.0", "torch==2.6.0"], f"{WHEEL}[mpi]"]]


def test_in_jupyterlab_the_cell_says_what_a_message_of_the_server_means(world):
    shutil.copy(world / "toys" / WHEEL, world / "course")
    assert "IPP Extension Server Error" in run(world, JPY_SESSION_NAME="00.ipynb")[1]


def test_without_mpi_for_this_system_the_rest_is_installed(world):
    shutil.copy(world / "toys" / "cnnlab.zip", world / "course")
    status, said, _ = run(world, fails="[mpi]")
    assert status == 0 and "without MPI" in said and said.endswith("cnnlab of the wheel\n")
    assert [what for _, what in asked(world)] == [f"{WHEEL}[mpi]", WHEEL]


def test_what_pip_cannot_install_is_one_sentence(world):
    shutil.copy(world / "toys" / WHEEL, world / "course")
    sentence = "cnnlab could not be installed here: No wheel for this system.\n"
    assert run(world, fails="cnnlab") == (1, INSTALLING, sentence)


def test_versions_that_are_in_conflict_are_named():
    lines = (
        "    cnnlab 0.1.0 depends on numba>=0.61\n    The user requested (constraint) numba==0.60\n"
    )
    said = f"ERROR: Cannot install it\n\nThe conflict is caused by:\n{lines}\nERROR: Resolution"
    assert setup.reason(said) == "; ".join(line.strip() for line in lines.splitlines())
    assert not [word for word in setup.PIP if word.startswith("-q") or word == "--quiet"]


def test_what_the_cell_added_to_the_path_is_gone_even_if_a_folder_has_just_been_removed(world):
    package(world / "course", "of the clone")
    for name in ("course/cnnlab-a", "course/lessons/cnnlab-b"):
        (world / name).mkdir()
    *lines, last = CELL.splitlines()
    remove = "import os; os.rmdir('../cnnlab-a'); before = sys.path[-1]"
    cell = "\n".join(
        [*lines, remove, last, "print(before, sys.path[-1] == before, '..' in sys.path)"]
    )
    status, said, _ = run(world, cell)
    assert status == 0 and "False False" in said


def test_run_again_the_cell_keeps_what_was_imported(world):
    package(world / "course", "of the clone")
    cell = f"{CELL}\nfirst = sys.modules['cnnlab']\n{CELL}\nassert first is sys.modules['cnnlab']"
    assert run(world, cell) == (0, "cnnlab of the clone\n" * 2, "")


def test_the_true_package_can_be_set_up_where_nothing_else_is_installed(world):
    with zipfile.ZipFile(world / "course" / WHEEL, "w") as wheel:
        for name in ("__init__.py", "runtime/__init__.py", "runtime/failures.py"):
            wheel.write(ROOT / "cnnlab" / name, f"cnnlab/{name}")
        wheel.write(setup.__file__, "cnnlab/runtime/setup.py")
    assert run(world, fails="cnnlab")[1] == INSTALLING
