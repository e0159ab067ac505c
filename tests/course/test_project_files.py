"""The files beside the code that tools and hosts read: each agrees with the rest of the course."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import cnnlab

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def targets(commands):
    """The targets of make that these commands name; every one of them is one of make's."""
    named = [re.fullmatch(r"make ([a-z-]+)", command)[1] for command in commands]
    assert all(re.search(rf"^{name}:.*##", MAKEFILE, re.MULTILINE) for name in named)
    return set(named)


def test_the_workflow_runs_what_a_change_has_to_pass_and_keeps_what_is_made():
    jobs = yaml.safe_load(read(".ci/github-actions.yml"))["jobs"]
    steps = {name: job["steps"] for name, job in jobs.items()}
    run = {name: targets(step["run"] for step in of if "run" in step) for name, of in steps.items()}
    assert run == {"check": {"render-check", "test"}, "hand-out": {"zip", "course"}}
    kept = steps["hand-out"][-1]["with"]["path"].split()
    assert kept == ["build/cnnlab.zip", "build/course"]
    assert not (ROOT / ".github").exists()  # for an instructor to copy, not to run by itself


def test_the_container_is_made_by_make_with_a_python_that_is_supported():
    container = json.loads(read(".devcontainer/devcontainer.json"))
    assert targets([container["postCreateCommand"]]) == {"setup"}
    version = re.match(r"python:(3\.\d+)-", container["image"])[1]
    assert version in ("3.11", "3.12", "3.13")


def test_a_commit_is_checked_by_the_ruff_of_the_course():
    [repository] = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert [entry.replace(" --force-exclude", "") for entry in entries] == [
        "ruff check",
        "ruff format --check",
    ]
    [ruff] = [
        line for line in PYPROJECT["project"]["optional-dependencies"]["dev"] if "ruff" in line
    ]
    assert all(hook["additional_dependencies"] == [ruff] for hook in repository["hooks"])


def test_the_citation_the_changes_and_the_licences_agree_with_the_package():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == cnnlab.__version__
    assert citation["title"].startswith("cnnlab: ")
    assert re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)[0] == cnnlab.__version__
    assert citation["license"] == [PYPROJECT["project"]["license"], "CC-BY-4.0"]
    prose = read("notebooks/LICENSE")
    assert "Creative Commons Attribution 4.0 International" in prose
    assert re.search("Copyright .*", read("LICENSE"))[0] in prose.replace(".", "")
    said = read("README.md").partition("## Licence")[2]
    assert "[MIT](LICENSE)" in said and "[CC BY 4.0](notebooks/LICENSE)" in said


def tracked():
    """The files that git knows; a source distribution has no git, and then there is no test."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is not a clone")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def test_notebooks_are_compared_cell_by_cell():
    command = ["git", "check-attr", "diff", "merge", "--", "notebooks/00_start_here.ipynb"]
    names = tracked()
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    assert said.count(": jupyternotebook\n") == 2 and "notebooks/00_start_here.ipynb" in names


@pytest.mark.slow
def test_the_source_distribution_is_the_whole_course(tmp_path):
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml needs it: make setup")
    files = tracked()
    for name in [*files, "data/cache/kernels/old.nbi", "tests/__pycache__/old.pyc"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if name in files:
            shutil.copy(ROOT / name, tmp_path / name)
        else:
            (tmp_path / name).touch()
    program = "from setuptools import build_meta; build_meta.build_sdist('build')"
    (tmp_path / "build").mkdir()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    [made] = (tmp_path / "build").glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    of_setuptools = {"PKG-INFO", "setup.cfg"}
    assert {name for name in names if ".egg-info/" not in name} - of_setuptools == files
