"""Compiled kernels are kept: until a source changes, and where a disk allows."""

import importlib
import shutil
from pathlib import Path

import numba
import pooch
import pytest
from numba.core.registry import CPUDispatcher

from cnnlab.ranks import schedules
from cnnlab.runtime import files as cache
from tests.programs import run

ROOT = Path(cache.__file__).parents[2]
PROGRAM = """
import numpy as np
from cnnlab.kernels import KERNELS
dz, db = np.ones((3, 2, 4, 5), np.float32), np.empty(2, np.float32)
KERNELS["loops"].conv_backward_bias(dz, db)
stats = KERNELS["loops"].kernel("conv_backward_bias").stats
print(db[0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of the course whose sources may be edited."""
    package = Path(cache.__file__).parents[1]
    shutil.copytree(package, tmp_path / "cnnlab", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "data").mkdir()
    return tmp_path


def run_in(folder, program=PROGRAM):
    """The words that a program prints, and what it says of itself."""
    done = run(program, folder=folder, PYTHONPATH=str(folder))
    return done.stdout.split(), done.stderr


@pytest.mark.slow
def test_a_kernel_is_compiled_once_and_again_when_a_source_has_changed(checkout):
    """Also a compressor's; and the instructions of a kept kernel can be counted."""
    more = """
from cnnlab.check.machine_code import vector_instructions
from cnnlab.distributed.compressors import base, compressor
z = np.ones((40, 30), np.float32)
KERNELS["vector"].sigmoid(z, np.empty_like(z))
kernel = KERNELS["vector"].kernel("sigmoid")
compressor("qsgd4")
base.maxima(np.arange(8, dtype=np.float32), 4, scales := np.empty(2, np.float32))
print(*scales, vector_instructions(kernel))
print(*(sum(each.stats.cache_hits.values()) for each in (kernel, base.maxima)))
"""
    first = run_in(checkout, PROGRAM + more)[0]
    with open(checkout / "cnnlab" / "training" / "loop.py", "a") as file:
        file.write("# a change where nothing is compiled\n")
    second = run_in(checkout, PROGRAM + more)[0]
    assert first[:3] == ["60.0", "0", "1"] and second[:3] == ["60.0", "1", "0"]
    assert first[3:-2] == second[3:-2] and int(first[-3]) > 0
    assert (first[-2:], second[-2:]) == (["0", "0"], ["1", "1"])
    with open(checkout / "cnnlab" / "kernels" / "pixels.py", "a") as file:
        file.write("# a change of another kernel\n")
    assert run_in(checkout)[0] == ["60.0", "0", "1"]
    assert len([*(checkout / "data" / "cache" / "kernels").iterdir()]) == 1


def test_each_source_that_a_kernel_may_use_changes_the_digest(checkout, monkeypatch):
    monkeypatch.setattr(cache, "__file__", str(checkout / "cnnlab" / "runtime" / "files.py"))
    seen = {cache.sources()}
    for changed in (
        "__init__.py",
        "ranks/schedules.py",
        "ranks/sparse.py",
        "distributed/compressors/base.py",
        "kernels/reference.py",
        "kernels/pixels.py",
        "kernels/threads.py",
        "kernels/workers.py",
    ):
        with open(checkout / "cnnlab" / changed, "a") as file:
            file.write("# a change elsewhere\n")
        assert cache.sources() not in seen, changed
        seen.add(cache.sources())


def test_versions_of_numba_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "folder", lambda name: tmp_path)
    of_another_source = tmp_path / "0123456789abcdef-numba-0.61.0"
    of_another_source.mkdir()
    folders = []
    for version in ("0.61.0", "0.62.1"):
        monkeypatch.setattr(numba, "__version__", version)
        folders.append(cache.kernel_folder())
    assert folders[0] != folders[1] and sorted(tmp_path.iterdir()) == sorted(folders)


def test_whatever_is_kept_comes_from_a_file_that_the_digest_covers():
    """Also what a kept kernel calls, wherever it lies."""
    files, result = set(cache.source_files()), set()
    for file in files:
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(name)
        for value in vars(module).values():
            if isinstance(value, CPUDispatcher):
                result.add(Path(value.py_func.__code__.co_filename))
    assert result <= files and Path(schedules.__file__) in result and len(result) > 10


def test_kernels_edited_after_their_import_are_not_kept(checkout):
    edit = """
import cnnlab.kernels
from pathlib import Path
file = Path(cnnlab.kernels.__file__).with_name("loops.py")
file.write_text(file.read_text() + "# a change")
"""
    assert run_in(checkout, edit + PROGRAM)[0] == ["60.0", "0", "1"]
    assert not (checkout / "data" / "cache").exists()


def test_where_nothing_can_be_kept_kernels_still_run(checkout):
    (checkout / "data" / "cache").touch()
    result, said = run_in(checkout)
    assert result == ["60.0", "0", "1"] and "compiled kernels are not kept" in said


def test_on_a_full_disk_kernels_still_run_and_one_line_says_so(checkout):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    two = "KERNELS['loops'].sigmoid(*np.zeros((2, 3, 4), np.float32))\n"
    result, said = run_in(checkout, full + PROGRAM + two)
    assert result == ["60.0", "0", "1"] and "Traceback" not in said
    assert said.count("compiled kernels are not kept: File too large") == 1


def test_the_cache_is_in_the_checkout_or_else_the_users(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cnnlab" / "runtime" / "files.py"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "user" / name)
    (tmp_path / "data").mkdir()
    assert cache.folder("mnist") == tmp_path / "user" / "cnnlab" / "mnist"
    (tmp_path / "pyproject.toml").touch()
    assert cache.folder("mnist") == tmp_path / "data" / "cache" / "mnist"
