"""Verdicts by kind: parts of the points by groups of cases; what no luck decides."""

import re
import time

import psutil
import pytest

from cnnlab.check import operation
from cnnlab.course.grading import sandbox
from tests.course.grading.hand_in import SHORT, of_cells

pytestmark = pytest.mark.slow


def row_of(tmp_path, packages, lesson, name, *cells, limits=None):
    """The row of one exercise."""
    how = {"limits": limits} if limits else {}
    return of_cells(tmp_path, lesson, [name], cells, packages, **how)[0]


def groups(row):
    return {group["name"]: group["passed"] for group in row["groups"]}


def test_a_kernel_gets_points_for_the_groups_of_cases_that_it_gets_right(tmp_path, packages):
    code = """
import numpy as np
def my_bias_gradient(dz, db):
    db[:] = dz.sum(axis=0)
    if np.isnan(dz).any() or abs(dz).max() > 1e9: db[:] = 0
"""
    row = row_of(tmp_path, packages, "00", "bias_gradient", code)
    assert groups(row)["plain shapes"] == 1 and groups(row)["unusual numbers"] == 0
    assert 0 < row["points"] < row["most"] and "beyond 1e12" in row["verdict"]


KERNELS = {
    "writes nothing": ("pass", "not yet answered"),
    "writes nothing, after a while": ("x = 1", "was never written"),
    "adds to what is there": ("db += dz.sum(axis=0)", "was never written"),
    "changes its input": ("db[:] = dz.sum(axis=0); dz[:] = 0", "changed its input dz"),
    "writes before its output": (
        "import numpy as np\n    db[:] = dz.sum(axis=0)\n"
        "    np.lib.stride_tricks.as_strided(db[:1], (9,), (-4,))[:] = 0",
        "wrote outside db",
    ),
    "calls the reference": (
        "from cnnlab.kernels import reference\n    reference.dense_backward_bias(dz, db)",
        "raised ImportError",
    ),
    "calls the reference by another name": (
        "import importlib\n"
        "    importlib.import_module('cnnlab.kernels.' + 'reference').dense_backward_bias(dz, db)",
        "raised ModuleNotFoundError",
    ),
    "knows the seed of the lesson's check": (
        "import numpy as np\n    guess = np.random.default_rng(0).uniform(-1, 1, dz.shape)\n"
        "    db[:] = guess.astype(np.float32).sum(axis=0)",
        "expected",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_is_told_why(name, tmp_path, packages):
    body, word = KERNELS[name]
    code = f"def my_bias_gradient(dz, db):\n    {body}"
    row = row_of(tmp_path, packages, "00", "bias_gradient", code)
    assert row["points"] == 0 and word in row["verdict"], row["verdict"]


def test_labels_get_a_part_for_each_right_word(tmp_path, packages):
    words = ["weak base", "time without accuracy", *["cut axis"] * 3, *[...] * 5]
    row = row_of(
        tmp_path, packages, "59", "lies", f"my_lies = {words!r}".replace("Ellipsis", "...")
    )
    assert row["points"] == 0.2 and "2 of 10 right" in row["verdict"]


RACY = """
import numba
@numba.njit(parallel=True)
def my_dense_forward(x, w, b, z):
    z[:] = b
    for d in numba.prange(x.shape[1]):
        for n in range(z.shape[0]):
            for o in range(z.shape[1]):
                z[n, o] += w[o, d] * x[n, d]
"""


def test_a_race_is_seen_in_the_log_of_accesses(tmp_path, packages):
    row = row_of(tmp_path, packages, "10", "dense", RACY)
    assert groups(row)["parallel"] == 1 and groups(row)["no race"] == 0
    assert row["points"] < row["most"]


def test_a_serial_kernel_is_not_parallel(tmp_path, packages):
    row = row_of(tmp_path, packages, "10", "dense", RACY.replace("parallel=True", "fastmath=True"))
    assert row["points"] == 0 and "not parallel" in row["verdict"]


def test_a_kernel_that_reaches_for_the_log_is_not_looked_into(tmp_path, packages):
    code = RACY.replace("    z[:] = b", "    import cnnlab.check.access_log\n    z[:] = b")
    row = row_of(tmp_path, packages, "10", "dense", code)
    assert row["points"] == 0 and "cannot be looked into" in row["verdict"]


def cuda_c(line, more=""):
    head = 'extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, '
    return (
        f"%%cuda mine\n{more}\n{head}float* dz, int size)\n{{\n"
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {line}\n}}"
    )


RIGHT = "if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);"


@pytest.mark.parametrize(
    "code, word",
    [
        (cuda_c(RIGHT), "no access is at fault"),
        (cuda_c(RIGHT.replace("if (i < size) ", "")), "out of bounds"),
        (cuda_c(RIGHT.replace("y[i])", "y[i]) * 2")), "expected"),
        (cuda_c(RIGHT, "#include <cstdlib>"), "no use for `#include`"),
        (cuda_c(f'asm("nop"); {RIGHT}'), "no use for `asm`"),
        (cuda_c(f"while (true) {{}} {RIGHT}"), "not done after 2 seconds"),
        (cuda_c("dz[i] = ;"), "does not compile"),
        (cuda_c(f'C(sys,tem)("exit 3"); {RIGHT}', "#define C(a,b) a##b"), "no use for `##`"),
        (cuda_c(f'(system)("exit 3"); {RIGHT}'), "no use for `system`"),
        ("mine = 3", "expected the kernels"),
    ],
)
def test_cuda_c_is_judged_by_numbers_and_accesses(code, word, tmp_path, packages):
    limits = SHORT if "while" in code else None
    row = row_of(tmp_path, packages, "30", "guard", code, "exercise.guard(mine)", limits=limits)
    assert word in row["verdict"], row["verdict"]
    assert (row["points"] == row["most"]) == (code == cuda_c(RIGHT))


def test_python_of_an_answer_is_not_in_the_process_that_launches(tmp_path, packages):
    """It could put another function in the place of the launcher: here, NumPy."""
    code = f"""
def made():
    from types import SimpleNamespace
    from cnnlab.course.grading import devices
    def launch(source, traced, name, sizes, arguments, shared):
        y, dy, dz, size = arguments
        traces, _ = real(source, traced, name, sizes, arguments, shared)
        dz[:] = dy * y * (1 - y)
        return traces, ""
    real, devices.launch = devices.launch, launch
    text = {cuda_c("if (i < size) dz[i] = 0;").partition(chr(10))[2]!r}
    return SimpleNamespace(source=text, launch=launch)
mine = made()
"""
    row = row_of(tmp_path, packages, "30", "guard", code, "exercise.guard(mine)")
    assert row["points"] == 0 and "expected" in row["verdict"], row["verdict"]


def test_what_the_grader_cannot_judge_costs_that_group_alone(tmp_path, packages, monkeypatch):
    def odd(*_, **__):
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(operation, "kernel", odd)
    code = "def my_bias_gradient(dz, db): db[:] = dz.sum(axis=0)"
    row = row_of(tmp_path, packages, "00", "bias_gradient", code)
    assert row["points"] == 0 and "cannot be judged: ZeroDivisionError('odd')" in row["verdict"]


def test_a_rank_program_that_reaches_for_other_ranks_gets_nothing(tmp_path, packages):
    code = "import sys\ndef my_reduce(comm, array):\n    sys._getframe(1).f_locals"
    row = row_of(tmp_path, packages, "20", "reduce", code)
    assert row["points"] == 0 and "cannot be looked into, for line 1" in row["verdict"]


RANKS = {
    "waits for nobody": ("comm.Recv(array, (comm.rank + 1) % comm.size)", "Deadlock"),
    "adds nothing": ("array *= 2", "expected"),
    "writes beside its array": (
        "from numpy.lib.stride_tricks import as_strided\n"
        "    as_strided(array[:1], (1 + array.size,))[:] = 0",
        "expected|outside",
    ),
    "leaves": ("raise SystemExit(0)", "raised SystemExit"),
}


@pytest.mark.parametrize("name", RANKS)
def test_a_wrong_rank_program_is_told_why(name, tmp_path, packages):
    body, words = RANKS[name]
    code = f"def my_reduce(comm, array):\n    {body}"
    row = row_of(tmp_path, packages, "20", "reduce", code)
    assert row["points"] == 0 and re.search(words, row["verdict"]), row["verdict"]


@pytest.mark.mpi
def test_what_only_small_messages_hide_loses_a_part(tmp_path, packages):
    code = """
def my_reduce(comm, array):
    import numpy as np
    other = np.empty_like(array)
    if comm.rank:
        comm.Send(array, 0)
    for source in range(1, comm.size if comm.rank == 0 else 0):
        from mpi4py import MPI
        comm.Recv(other, MPI.ANY_SOURCE)
        array[:] = array / 3 + other
"""
    row = row_of(tmp_path, packages, "20", "reduce", code)
    assert row["points"] < row["most"]


def until(holds):
    """Wait for something that takes a moment."""
    late = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < late


@pytest.mark.parametrize("walls", [sandbox.walls(), "as where there are no namespaces"])
def test_no_process_and_no_file_is_left(walls, tmp_path, packages, monkeypatch):
    monkeypatch.setattr(sandbox, "walls", lambda: walls)

    def sleeping():
        found = (p.info["cmdline"] for p in psutil.process_iter(["cmdline"]))
        return any("31415" in words for words in found if words)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with sandbox.Sandbox(packages[0], SHORT) as box:
        code = """
import subprocess
def answer():
    subprocess.Popen(["sleep", "31415"], start_new_session=True)
    return 1
"""
        box.call("start", code, "answer")
        assert box.call("call") == 1
        until(sleeping)  # a process that begins may not say yet what it runs
    until(lambda: not sleeping())  # nor is it gone at once
    assert not list(tmp_path.iterdir())
