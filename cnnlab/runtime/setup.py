"""The setup cell of a lesson: finds the course, or installs it, before anything else is imported.

The cell runs this file wherever it first finds one, be it inside a wheel or the zip of `make zip`
and without any other package. So only the standard library may be imported here.
"""

import importlib
import importlib.machinery
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PLACES = (".", "..", "/content")  # beside the lesson, above it, and where Colab keeps files
# What the cell has added to sys.path, to find this file.
ADDED = re.compile(r"(\.\.?|/content)([/\\]cnnlab.*)?")
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?")
WHEEL = re.compile(r"(.*/)?cnnlab-[^/]+\.whl")


def ready(otherwise: str) -> None:
    """Make `import cnnlab` find the course, and print its version.

    A clone around the lesson comes first, then what is installed, then a wheel or zip in PLACES,
    which pip installs and for which it replaces nothing. Raises SystemExit with the sentence
    `otherwise` if there is none of them, and with another one if pip fails.
    """
    while sys.path and ADDED.fullmatch(sys.path[-1]):
        sys.path.pop()
    clones = [root for root in around() if (root / "cnnlab/runtime/thread_pool.py").is_file()]
    if clones:
        sys.path.insert(0, str(clones[0]))
    if not importable():
        sources = [*clones[:1], *archives()]
        if not sources:
            sys.exit(otherwise)
        install(sources[0])
        if not importable():
            sys.exit("cnnlab is installed, but not for this kernel: restart it and run this again.")
    print("cnnlab", sys.modules["cnnlab"].__version__)


def around() -> list[Path]:
    """Folders that may be a clone: PLACES, and what is named after the course in them."""
    places = [Path(place).resolve() for place in PLACES]
    return [root for place in places for root in (place, *sorted(place.glob("cnnlab*")))]


def importable() -> bool:
    """Whether the course can be imported now; it then is, from where `sys.path` has it first.

    What was imported from elsewhere, as this module may have been, is forgotten before.
    """
    importlib.invalidate_caches()
    result = importlib.machinery.PathFinder.find_spec("cnnlab", sys.path)
    loaded = sys.modules.get("cnnlab")
    if not result or not loaded or loaded.__spec__.origin != result.origin:
        for name in [name for name in sys.modules if re.match(r"cnnlab(\.|$)", name)]:
            del sys.modules[name]
    try:
        importlib.import_module("cnnlab.runtime.thread_pool")  # which needs a package
    except ModuleNotFoundError:
        return False
    return True


def archives() -> list[Path]:
    """The wheels and zips of the course in PLACES: wheels first, the newest version first."""
    kinds = [(place, kind) for place in PLACES for kind in ("cnnlab*.whl", "cnnlab*.zip")]
    files = [file for place, kind in kinds for file in sorted(Path(place).glob(kind))[::-1]]
    return [file for file in files if file.suffix == ".whl" or wheels_in(file)]


def wheels_in(file: Path) -> list[str]:
    """The names of the course's wheels in a zip; none if it cannot be read."""
    if not zipfile.is_zipfile(file):
        return []
    with zipfile.ZipFile(file) as archive:
        return sorted(filter(WHEEL.fullmatch, archive.namelist()))


def install(source: Path) -> None:
    """Install a wheel, the wheel in a zip, or a clone, and all it needs; SystemExit if pip cannot.

    Every package that is here keeps its version. Without MPI where there is none for this system.
    """
    print("installing cnnlab, once: a minute or so", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        what = [str(source.resolve())]
        if source.suffix == ".zip":
            with zipfile.ZipFile(source) as archive:
                what = [archive.extract(wheels_in(source)[-1], folder)]
        elif source.is_dir():
            what.insert(0, "--editable")
        kept = Path(folder, "kept.txt")
        kept.write_text("\n".join(present()), encoding="utf-8")
        command = [sys.executable, *PIP, "--constraint", str(kept), *what[:-1]]
        for extras in ("[mpi]", ""):
            done = subprocess.run([*command, what[-1] + extras], capture_output=True, text=True)
            if done.returncode == 0:
                break
        else:
            sys.exit(f"cnnlab could not be installed here: {reason(done.stdout + done.stderr)}.")
    if "JPY_SESSION_NAME" in os.environ:  # a server, for which ipyparallel's extension is too new
        print(
            "An 'IPP Extension Server Error' may be closed: it ends when JupyterLab is restarted."
        )
    if not extras:
        print("without MPI, for which pip found nothing: some cells of the lessons on ranks fail")


def present() -> list[str]:
    """`name==version` of every package that is installed, but for the course itself."""
    result = importlib.metadata.distributions()
    versions = {d.name: d.version.partition("+")[0] for d in result if d.name and d.version}
    versions.pop("cnnlab", None)
    return sorted(f"{name}=={v}" for name, v in versions.items() if VERSION.fullmatch(v))


def reason(said: str) -> str:
    """What pip says last of its errors, without the full stop; which versions are in conflict."""
    if conflict := re.search(r"The conflict is caused by:\n((?: +.*\n)+)", said):
        return "; ".join(line.strip() for line in conflict[1].splitlines())
    lines = said.strip().splitlines() or ["pip says nothing"]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines)[-1].rstrip(". ")
