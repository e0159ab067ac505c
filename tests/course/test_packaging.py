"""The files beside the code that tools and hosts read: they agree with the rest of the course."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import nbformat
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement

import cnnlab
from cnnlab.course import parts
from cnnlab.course.parts import ROOT

PROJECT = parts.project()
EXTRAS = PROJECT["optional-dependencies"]
# The versions on Colab's older runtime, which installing the course there must leave alone.
COLAB = {"numpy": "2.0.2", "numba": "0.60.0", "ipyparallel": "8.8.0", "cupy-cuda12x": "13.6.0"}
LINUX = {"platform_system": "Linux", "python_version": "3.12"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def needed(lines):
    """Return {name: requirement} of what Linux needs, without the extras of cnnlab itself."""
    requirements = [r for r in map(Requirement, lines) if not r.marker or r.marker.evaluate(LINUX)]
    return {r.name.lower(): r for r in requirements if r.name != "cnnlab"}


def bounds(lines):
    """Return {name: specifier} of what is needed."""
    return {name: str(r.specifier) for name, r in needed(lines).items()}


def test_environment_for_conda_mirrors_pyproject():
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["channels"] == ["conda-forge"]
    *packages, of_pip = environment["dependencies"]
    *others, ours = of_pip["pip"]
    assert ours == "-e ."
    conda = bounds([*packages, *others])  # conda-forge does not have all
    assert conda.pop("pip") == conda.pop("cxx-compiler") == ""
    assert conda.pop("python") == str(Requirement(f"x{PROJECT['requires-python']}").specifier)
    groups = (PROJECT["dependencies"], EXTRAS["lessons"], EXTRAS["mpi"], EXTRAS["dev"])
    assert conda == bounds(line for group in groups for line in group)


def test_colab_keeps_its_versions():
    groups = [PROJECT["dependencies"], *EXTRAS.values()]
    requirements = needed(line for group in groups for line in group)
    for name, version in COLAB.items():
        assert version in requirements[name].specifier, f"{name} {version} would be replaced"
    assert "3.14.0" in Requirement(f"x{PROJECT['requires-python']}").specifier


def test_the_version_and_the_licences_are_the_same_wherever_they_are_stated():
    citation = yaml.safe_load(read("CITATION.cff"))
    changes = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert PROJECT["version"] == cnnlab.__version__ == citation["version"] == changes[0]
    assert PROJECT["license"] == "MIT" and read("LICENSE").startswith("MIT License")
    assert citation["license"] == ["MIT", "CC-BY-4.0"]
    prose = read("notebooks/LICENSE")
    assert "Creative Commons Attribution 4.0 International" in prose
    assert re.search("Copyright .*", read("LICENSE"))[0] in prose.replace(".", "")
    said = read("README.md").partition("## Licence")[2]
    assert "[MIT](LICENSE)" in said and "[CC BY 4.0](notebooks/LICENSE)" in said


@pytest.mark.parametrize("page, most", [("README.md", 120), ("CONTRIBUTING.md", 150)])
def test_pages_are_short_and_link_only_to_what_exists(page, most):
    assert len(read(page).splitlines()) <= most
    links = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\":]+)\"", read(page))
    assert links
    missing = [link for pair in links for link in pair if link and not (ROOT / link).exists()]
    assert not missing


def test_the_commands_that_pages_name_exist():
    makefile = read("Makefile").replace("$(LOWEST)", "build/venv-lowest")
    targets = re.findall(r"^([a-z/-]+):", makefile, re.M)
    for page in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        named = re.findall(r"(?:^ *|`)make ([a-z/-]+)", read(page), re.M)
        assert named and set(named) <= set(targets), page
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    jobs = yaml.safe_load(read(".ci/github-actions.yml"))["jobs"]
    run = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    run.append(json.loads(read(".devcontainer/devcontainer.json"))["postCreateCommand"])
    assert {command.removeprefix("make ") for command in run} <= set(targets)
    kept = jobs["hand-out"]["steps"][-1]["with"]["path"].split()
    assert kept == ["build/cnnlab.zip", "build/course"]


# --- the source distribution --------------------------------------------------------------------


@pytest.mark.slow
def test_the_source_distribution_is_the_whole_course(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is not a clone")
    files = {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}
    for name in [*files, "data/cache/kernels/old.nbi", "tests/__pycache__/old.pyc"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes() if name in files else b"")
    program = "from setuptools import build_meta; build_meta.build_sdist('build')"
    (tmp_path / "build").mkdir()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    [made] = (tmp_path / "build").glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    names = {name for name in names if ".egg-info/" not in name}
    assert names - {"PKG-INFO", "setup.cfg"} == files


# --- make setup ---------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    if not shutil.which("make"):
        pytest.skip("make is not installed")
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


def test_setup_says_which_python_it_needs(clone):
    for python in ("no-such-python", script(clone / "old", "exit 1")):
        status, said = make(clone, "setup", f"PYTHON={python}")
        assert status != 0
        assert "cnnlab needs Python 3.11 to 3.14; tried: " in said
        assert not (clone / ".venv").exists()


def test_setup_without_venv_and_virtualenv_says_what_to_install(clone):
    bare = 'case "$*" in *ensurepip*|*pip\\ install*) exit 1;; --version) echo "Python 3.12";; esac'
    status, said = make(clone, "setup", f"PYTHON={script(clone / 'bare', bare)}")
    assert status != 0
    assert "fetching virtualenv instead" in said and "apt install python3-venv" in said
    assert not (clone / ".venv" / "installed").exists()


@pytest.mark.parametrize("user", [0, 1000])
def test_jupyter_is_let_run_as_root_only_for_root(clone, monkeypatch, user):
    (clone / "bin").mkdir()
    script(clone / "bin" / "python", 'echo "$@"')
    script(clone / "bin" / "id", f"echo {user}")
    monkeypatch.setenv("PATH", f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}")
    ready = [f"--assume-old={target}" for target in ("setup", f"{clone}/installed")]
    status, said = make(clone, "lab", f"VENV={clone}", *ready)
    assert status == 0 and "jupyterlab" in said and ("--allow-root" in said) == (user == 0)


def test_make_alone_lists_every_command(clone):
    status, said = make(clone)
    assert status == 0
    documented = re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.MULTILINE)
    assert {"course", "test", "setup", "lab", "zip", "render", "stamp"} <= set(documented)
    for target in documented:
        assert f"make {target} " in said


@pytest.mark.slow
def test_a_lesson_without_the_tag_mpi_needs_no_package_of_that_extra():
    imports = set()
    for path in parts.NOTEBOOKS.glob("*.ipynb"):
        cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        if "mpi" not in cells[0].metadata.tags:
            code = "".join(TransformerManager().transform_cell(each.source) for each in cells)
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Import | ast.ImportFrom) and "cnnlab" in ast.unparse(node):
                    imports.add(ast.unparse(node))
    away = "import sys; sys.modules.update(dict.fromkeys(['mpi4py', 'ipyparallel']))"
    code = "\n".join([away, *sorted(imports)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert len(imports) > 40 and not done.stderr
