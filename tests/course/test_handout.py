"""What is handed out, in a folder that holds nothing else: see `make zip` and `make lab`."""

import io
import json
import os
import re
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

import cnnlab
from cnnlab.course import handout, render
from tests.course.toy_lesson import toy

ROOT = Path(__file__).resolve().parents[2]
# The setup cell, the imports and the network of lesson 00, as Jupyter runs them.
RUN = """
import nbclient, nbformat
nb = nbformat.read("00_start_here.ipynb", as_version=4)
code = [cell for cell in nb.cells if cell.cell_type == "code"]
nb.cells = [code[0], code[1], code[2], nbformat.v4.new_code_cell(LOOK)]
nbclient.NotebookClient(nb, timeout=120, kernel_name="python3").execute()
print("".join(output["text"] for cell in (nb.cells[0], nb.cells[-1]) for output in cell.outputs))
"""
LOOK = """
import sys
from cnnlab.measure import bench
print(cnnlab.__file__ if "cnnlab" in vars() else sys.modules["cnnlab"].__file__)
print(numpy.__version__ if "numpy" in vars() else np.__version__, numba.__version__)
print(any(bench.MEASUREMENTS.glob("study-*.json")), [path for path in sys.path if "cnnlab" in path])
"""


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    file = tmp_path_factory.mktemp("zip") / "cnnlab.zip"
    handout.make_zip(ROOT, file)
    return file


@pytest.mark.slow
def test_the_zip_holds_a_wheel_and_every_lesson_without_answers(zipped):
    with zipfile.ZipFile(zipped) as archive:
        names = set(archive.namelist())
        [wheel] = [name for name in names if name.endswith(".whl")]
        with zipfile.ZipFile(io.BytesIO(archive.read(wheel))) as packed:
            inside = set(packed.namelist())
        lessons = [name for name in names if name.endswith(".ipynb")]
        books = [nbformat.reads(archive.read(name), as_version=4) for name in lessons]
        read_me = archive.read("READ-ME.txt").decode()
    assert read_me.startswith(f"cnnlab {cnnlab.__version__}: ") and "{" not in read_me
    assert set(re.findall(r"lessons/\S+\.\w+", read_me)) <= names
    assert {Path(name).name for name in lessons} == {p.name for p in ROOT.glob("notebooks/*.ipynb")}
    assert "cnnlab/runtime/setup.py" in names and "lessons/teaching.md" not in names
    for path in (file for file in ROOT.glob("cnnlab/**/*") if file.is_file()):
        assert str(path.relative_to(ROOT)) in inside or "__pycache__" in path.parts
    for path in ROOT.glob("data/measurements/*.json"):
        assert f"cnnlab/data/measurements/{path.name}" in inside
    for nb in books:
        nbformat.validate(nb)
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in nb.cells)
        text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
        assert "<summary>Exercise" not in text
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", re.sub("`.*?`", "", text))
        assert links and {f"lessons/{link}" for link in links} <= names


@pytest.mark.slow
def test_a_lesson_runs_in_a_folder_with_nothing_but_the_zip(zipped, tmp_path):
    """With the packages of this environment, of which none is replaced, and no network."""
    python = bare(tmp_path / "environment")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / zipped.name).write_bytes(zipped.read_bytes())
    name = "00_start_here.ipynb"
    nb = render.stamp(nbformat.read(ROOT / "notebooks" / name, as_version=4), name, None)
    nbformat.write(handout.for_students(nb), folder / name)
    environment = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    environment |= {"HOME": str(tmp_path), "PIP_NO_INDEX": "1", "CNNLAB_OFFLINE": "1"}
    command = [python, "-c", f"LOOK = {LOOK!r}\n{RUN}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    installing, version, where, versions, rest = done.stdout.strip().splitlines()
    assert installing.startswith("installing cnnlab, once")
    assert version == f"cnnlab {cnnlab.__version__}"
    assert Path(where).is_relative_to(tmp_path / "environment")
    import numba
    import numpy

    assert versions == f"{numpy.__version__} {numba.__version__}"
    assert rest == "True []"
    assert {path.name for path in folder.iterdir()} == {name, zipped.name}


def bare(folder):
    """An environment with the packages of this one, but for the course; its Python."""
    venv.create(folder, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "cnnlab" not in path.name:
            (Path(paths["purelib"]) / path.name).symlink_to(path)
    return str(folder / "bin" / "python")


def test_a_student_gets_a_lesson_without_outputs_and_model_answers():
    nb = toy("1 + 1", "2 + 2")
    nb.cells[2] |= {"execution_count": 2, "outputs": [nbformat.v4.new_output("stream", text="2")]}
    nb.cells[3].metadata["tags"] = ["answers"]
    sources = [cell.source for n, cell in enumerate(nb.cells) if n != 3]
    given = handout.for_students(nb)
    assert [cell.source for cell in given.cells] == sources
    assert given.cells[2].outputs == [] and given.cells[2].execution_count is None


def test_a_copy_to_work_on_is_never_written_over(tmp_path, capsys):
    notebooks, work = tmp_path / "notebooks", tmp_path / "work"
    notebooks.mkdir()
    for name in ("00_a.ipynb", "01_b.ipynb", "teaching.md", "lessons.toml", *handout.PAGES):
        (notebooks / name).write_text(json.dumps(name))
    handout.make_copy(notebooks, work)
    assert capsys.readouterr().out == "work/: 2 lessons copied, 0 kept as you left them\n"
    copied = {path.name for path in work.iterdir()}
    assert copied == {"00_a.ipynb", "01_b.ipynb", *handout.PAGES}
    (work / "00_a.ipynb").write_text("mine")
    (work / "01_b.ipynb").unlink()
    handout.make_copy(notebooks, work)
    assert capsys.readouterr().out == "work/: 1 lesson copied, 1 kept as you left them\n"
    assert (work / "00_a.ipynb").read_text() == "mine"
    assert (work / "01_b.ipynb").read_text() == (notebooks / "01_b.ipynb").read_text()
