import os
import re
import shutil
import subprocess
import time
import tomllib
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
    assert conda.pop("pip") == ""
    assert conda.pop("python") == str(Requirement(f"x{PROJECT['requires-python']}").specifier)
    groups = (PROJECT["dependencies"], EXTRAS["lessons"], EXTRAS["mpi"], EXTRAS["dev"])
    assert conda == bounds(line for group in groups for line in group)


def test_colab_keeps_its_versions():
    groups = [PROJECT["dependencies"], *EXTRAS.values()]
    requirements = {r.name: r for r in map(Requirement, (line for g in groups for line in g))}
    for name, version in COLAB.items():
        assert version in requirements[name].specifier, f"{name} {version} would be replaced"
    assert "3.13.0" in Requirement(f"x{PROJECT['requires-python']}").specifier


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


def test_the_readme_lists_every_lesson():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{path.name})" in text


def test_the_commands_that_pages_name_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for page in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        named = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.M)
        assert named and set(named) <= set(targets), page
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


# --- make setup ---------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(clone, *arguments):
    """Run make as if by hand, in another folder than the one whose make may run this test."""
    environ = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHON")}
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
def test_setup_is_redone_only_after_pyproject_changed(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "installed").touch()
    assert make(clone, "-q", ".venv/installed")[0] == 0
    later = time.time() + 10
    os.utime(clone / "pyproject.toml", (later, later))
    assert make(clone, "-q", ".venv/installed")[0] == 1


@needs_make
def test_make_alone_lists_every_command(clone):
    status, said = make(clone)
    assert status == 0
    for target in ("course", "test", "setup", "lab", "render", "render-check", "test-lowest"):
        assert f"make {target} " in said
