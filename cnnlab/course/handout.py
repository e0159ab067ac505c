"""What is handed out: a zip with a wheel and the lessons; and the copy that `make lab` works on."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from cnnlab.course import parts
from cnnlab.course.render import plural, to_text
from cnnlab.runtime.files import replacing

BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")
PAGES = "glossary.md", "methods.md"  # to which lessons link
EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can tell: the same files then give the same bytes
READ_ME = Path(__file__).with_name("READ-ME.txt")


def make_zip(root: Path, file: Path) -> None:
    """Write the zip for students of the checkout `root`, and say so."""
    version = parts.project(root / "pyproject.toml")["version"]
    read_me = READ_ME.read_text(encoding="utf-8").format(version=version)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(root, Path(folder))
        contents = {"READ-ME.txt": read_me.encode(), wheel.name: wheel.read_bytes()}
    # For the setup cell: Python imports from a zip, its folders listed, not from a wheel in one.
    setup = (root / "cnnlab" / "runtime" / "setup.py").read_bytes()
    contents |= {"cnnlab/": b"", "cnnlab/runtime/": b"", "cnnlab/runtime/setup.py": setup}
    for path in sorted((root / "notebooks").iterdir()):
        if path.suffix == ".ipynb":
            nb = for_students(nbformat.read(path, as_version=4))
            contents[f"lessons/{path.name}"] = to_text(nb).encode()
        elif path.name in (*PAGES, "LICENSE"):
            contents[f"lessons/{path.name}"] = path.read_bytes()
    with replacing(file) as written, zipfile.ZipFile(written, "w") as archive:
        for name, content in contents.items():
            member = zipfile.ZipInfo(name, EARLIEST)
            member.external_attr = (0o40755 if member.is_dir() else 0o100644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    size = file.stat().st_size / 1e6
    print(f"{file}: {size:.1f} MB, for students; its READ-ME says what to do with it")


def build_wheel(root: Path, folder: Path) -> Path:
    """Build the wheel of the checkout `root` in a folder, with the measurements that lessons read.

    Raises RuntimeError with what pip says if it cannot be built.
    """
    source = folder / "source"
    shutil.copytree(
        root / "cnnlab", source / "cnnlab", ignore=shutil.ignore_patterns("__pycache__")
    )
    measurements = source / "cnnlab" / "data" / "measurements"
    measurements.mkdir()
    for file in (root / "data" / "measurements").glob("*.json"):
        shutil.copy(file, measurements)
    for name in BUILT_FROM:
        shutil.copy(root / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}  # EARLIEST
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"the wheel could not be built:\n{done.stderr.strip()}")
    return next(folder.glob("*.whl"))


def for_students(nb: NotebookNode) -> NotebookNode:
    """The lesson itself, now without outputs, which answer predictions, and model answers."""
    nb.cells = [cell for cell in nb.cells if "answers" not in cell.metadata.get("tags", [])]
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nb


def make_copy(notebooks: Path, work: Path) -> None:
    """Copy the lessons, and the pages that they link to, to a folder; never over a file there."""
    work.mkdir(exist_ok=True)
    lessons = sorted(notebooks.glob("*.ipynb"))
    missing = [path for path in lessons if not (work / path.name).exists()]
    for path in [*missing, *(notebooks / name for name in PAGES)]:
        if not (work / path.name).exists():
            with replacing(work / path.name) as file:
                file.write(path.read_bytes())
    kept = len(lessons) - len(missing)
    print(f"work/: {plural(len(missing))} copied, {kept} kept as you left them")
