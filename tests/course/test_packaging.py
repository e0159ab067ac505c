import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import cnnlab

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# The versions on Colab, which installing the course there must leave alone.
COLAB = {"numpy": "2.1.0", "numba": "0.61.0", "ipyparallel": "8.8.0", "cupy-cuda12x": "14.0.0"}
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def bounds(lines):
    """Return {name: specifier} without the extras of cnnlab itself."""
    requirements = [Requirement(line) for line in lines]
    return {r.name.lower(): str(r.specifier) for r in requirements if r.name != "cnnlab"}


def test_environment_for_conda_mirrors_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge"]
    *packages, of_pip = environment["dependencies"]
    assert of_pip == {"pip": ["-e ."]}
    conda = bounds(packages)
    assert conda.pop("pip") == conda.pop("cxx-compiler") == ""
    assert conda.pop("python") == str(Requirement(f"x{PROJECT['requires-python']}").specifier)
    groups = (PROJECT["dependencies"], EXTRAS["lessons"], EXTRAS["mpi"], EXTRAS["dev"])
    assert conda == bounds(line for group in groups for line in group)


def test_colab_keeps_its_versions():
    groups = [PROJECT["dependencies"], *EXTRAS.values()]
    requirements = {r.name: r for r in map(Requirement, (line for g in groups for line in g))}
    for name, version in COLAB.items():
        assert version in requirements[name].specifier, f"{name} {version} would be replaced"
    assert "3.13.0" in Requirement(f"x{PROJECT['requires-python']}").specifier


def test_a_clone_in_a_folder_of_that_name_hides_nothing(tmp_path):
    """An editable install is a path: Python looks there before it takes a folder for a package."""
    (tmp_path / "cnnlab").mkdir()
    program = "import cnnlab; print(cnnlab.__version__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.stdout.decode().strip() == cnnlab.__version__, done.stderr.decode()


def test_every_dependency_has_a_lower_bound():
    for group in (PROJECT["dependencies"], *EXTRAS.values()):
        for name, specifier in bounds(group).items():
            assert ">=" in specifier, name


def test_the_version_and_the_licence_are_stated_once_and_the_same():
    assert PROJECT["version"] == cnnlab.__version__
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "MIT" and licence.startswith("MIT License")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_pages_link_only_to_what_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\":]+)\"", text)
    assert links
    missing = [link for pair in links for link in pair if link and not (ROOT / link).exists()]
    assert not missing


def test_the_commands_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    makefile = makefile.replace("$(LOWEST)", "build/venv-lowest")
    targets = re.findall(r"^([a-z/-]+):", makefile, re.M)
    for page in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        named = re.findall(r"(?:^ *|`)make ([a-z/-]+)", (ROOT / page).read_text("utf-8"), re.M)
        assert named and set(named) <= set(targets), page
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


# --- the wheel ----------------------------------------------------------------------------------


def test_every_file_of_the_package_is_declared_to_be_packed():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    patterns = tool["package-data"]["cnnlab"]
    package = ROOT / "cnnlab"
    packed = {file for pattern in patterns for file in package.glob(pattern)}
    for file in (f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
        assert file.suffix == ".py" or file in packed, file
        assert (file.parent / "__init__.py").exists() or file.suffix != ".py", file


@pytest.mark.slow
def test_a_wheel_holds_all_that_the_package_reads(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "cnnlab", tmp_path / "cnnlab", ignore=ours)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if name.startswith("cnnlab/")}
    assert names == {str(f.relative_to(tmp_path)) for f in tmp_path.glob("cnnlab/**/*.*")}
    assert {
        "cnnlab/cuda/conv.cu",
        "cnnlab/cuda/emulator/device.h",
        "cnnlab/data/report_tables.toml",
    } < names


# --- .ci/run ------------------------------------------------------------------------------------


STEPS = ["", "render-check", "build/venv-lowest/installed", "test-lowest", "test"]


@pytest.mark.parametrize(
    "failing, chromium", [*((step, False) for step in STEPS), ("", True), (".venv/browser", True)]
)
def test_ci_tries_the_newest_other_python_and_ends_with_the_whole(tmp_path, failing, chromium):
    for folder in (".ci", ".venv/bin", "bin", ".pyenv/versions/3.13.5/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    script(tmp_path / ".venv/bin/python", "echo 3.11")
    newest = script(tmp_path / ".pyenv/versions/3.13.5/bin/python", "exit 0")
    for version in ("3.11", "3.12"):
        script(tmp_path / f"bin/python{version}", "exit 0")
    script(tmp_path / "bin/python3.13", "exit 127")  # as pyenv's, where another is chosen
    script(tmp_path / "bin/make", f'echo "make $*"; [ "$1" != "{failing}" ]')
    for program in ("dirname", "timeout", "sh"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program))
    if chromium:
        script(tmp_path / "bin/chromium", "exit 0")
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    command = [shutil.which("bash"), str(tmp_path / ".ci" / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert ("Playwright: not installed, pip has failed" in said) == (failing == ".venv/browser")
    assert [line for line in said if line.startswith("make")] == [
        "make render-check",
        f"make build/venv-lowest/installed LOWEST_PYTHON={newest}",
        f"make test-lowest LOWEST_PYTHON={newest}",
        "make test",
    ]
    assert done.returncode == (failing in STEPS[1:])


# --- make setup ---------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(clone, *arguments):
    """Run make as if by hand, in another folder than the one whose make may run this test."""
    own = "MAKEFLAGS", "MAKELEVEL", "PYTHON", "VENV"
    environ = {k: v for k, v in os.environ.items() if k not in own}
    command = ["make", "--no-print-directory", *arguments]
    done = subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True)
    return done.returncode, done.stdout


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@needs_make
def test_setup_says_which_python_it_needs(clone):
    for python in ("no-such-python", script(clone / "old", "exit 1")):
        status, said = make(clone, "setup", f"PYTHON={python}")
        assert status != 0
        assert "cnnlab needs Python 3.11, 3.12 or 3.13; tried: " in said
        assert not (clone / ".venv").exists()


@needs_make
def test_setup_without_venv_and_virtualenv_says_what_to_install(clone):
    bare = 'case "$*" in *ensurepip*|*pip\\ install*) exit 1;; --version) echo "Python 3.12";; esac'
    status, said = make(clone, "setup", f"PYTHON={script(clone / 'bare', bare)}")
    assert status != 0
    assert "fetching virtualenv instead" in said and "apt install python3-venv" in said
    assert not (clone / ".venv" / "installed").exists()


@needs_make
@pytest.mark.skipif(bool(shutil.which("nvidia-smi")), reason="there is a GPU")
def test_without_a_gpu_make_gpu_says_so_and_fails(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "installed").touch()
    said = "make gpu: there is no NVIDIA GPU here (no nvidia-smi)\n"
    assert make(clone, "gpu") == (2, said)


@needs_make
def test_setup_is_redone_only_after_pyproject_changed(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "installed").touch()
    assert make(clone, "-q", ".venv/installed")[0] == 0
    later = time.time() + 10
    os.utime(clone / "pyproject.toml", (later, later))
    assert make(clone, "-q", ".venv/installed")[0] == 1


@needs_make
def test_every_command_can_use_another_environment(clone):
    (clone / "build" / "other").mkdir(parents=True)
    (clone / "build" / "other" / "installed").touch()
    for target in ("quick", "test", "course", "render-check"):
        status, said = make(clone, "--dry-run", target, "VENV=build/other")
        assert (
            status == 0 and f'PATH="{clone}/build/other/bin:$PATH" build/other/bin/python' in said
        )
        assert ".venv" not in said
    status, said = make(clone, "setup", "VENV=build/new", "PYTHON=no-such-python")
    assert status != 0 and "tried: no-such-python" in said


@needs_make
def test_lab_opens_a_copy_with_the_whole_clone_around_it(clone):
    (clone / ".venv" / "bin").mkdir(parents=True)
    script(clone / ".venv" / "bin" / "python", 'echo "$@"')
    (clone / ".venv" / "installed").touch()
    assert make(clone, "lab") == (
        0,
        "-m cnnlab.course copy\n"
        f"-m jupyterlab --ServerApp.root_dir={clone} work/00_start_here.ipynb\n",
    )
    assert "work/\n" in (ROOT / ".gitignore").read_text()


@needs_make
def test_make_alone_lists_every_command(clone):
    status, said = make(clone)
    assert status == 0
    for target in (
        "course",
        "quick",
        "test",
        "setup",
        "lab",
        "zip",
        "render",
        "stamp",
        "render-check",
        "test-lowest",
        "browser",
    ):
        assert f"make {target} " in said
