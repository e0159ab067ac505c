import contextlib
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda import SOURCES
from cnnlab.cuda.emulator import Emulated, compiler
from cnnlab.runtime.files import replacing
from tests.source import NOTEBOOKS

GRID = """
extern "C" __global__ void where(int* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z, wide = gridDim.x * blockDim.x;
    int i = (z * gridDim.y * blockDim.y + y) * wide + x;
    if (i < n) out[i] = 100 * x + 10 * y + z;
}
"""
REVERSE = """
extern "C" __global__ void reverse(float* a)  // within a block, through shared memory
{
    extern __shared__ float seen[];
    seen[threadIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    a[blockIdx.x * blockDim.x + threadIdx.x] = seen[blockDim.x - 1 - threadIdx.x];
}
"""
SHUFFLES = """
extern "C" __global__ void shuffles(const int* a, int* down, int* crossed, int* first)
{
    int i = threadIdx.x, value = a[i];
    down[i] = __shfl_down_sync(0xffffffff, value, 3);
    crossed[i] = __shfl_xor_sync(0xffffffff, value, 1);
    first[i] = __shfl_sync(0xffffffff, value, 0);
}
"""
BUTTERFLY = """
extern "C" __global__ void butterfly(int* a)
{
    int sum = a[threadIdx.x];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    a[threadIdx.x] = sum;
}
"""


def test_grids_and_blocks_of_three_dimensions():
    out = np.full(6 * 4 * 4, -1, np.int32)
    Emulated(GRID).launch("where", (2, 2, 2), (3, 2, 2), out, out.size)
    z, y, x = np.indices((4, 4, 6))
    assert np.array_equal(out, (100 * x + 10 * y + z).ravel())


def test_threads_meet_at_a_barrier_and_share_memory():
    a = np.arange(12, dtype=np.float32)
    Emulated(REVERSE).launch("reverse", (3,), (4,), a, shared=16)
    assert a.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]


def test_shared_memory_is_not_zero_at_the_start():
    source = REVERSE.replace("seen[threadIdx.x] = a", "if (threadIdx.x) seen[threadIdx.x] = a")
    a = np.arange(4, dtype=np.float32)
    Emulated(source).launch("reverse", (1,), (4,), a, shared=16)
    assert np.isnan(a[3]) and a[:3].tolist() == [3, 2, 1]


def test_shuffles_stay_within_their_warp():
    a = np.arange(64, dtype=np.int32) ** 2
    down, crossed, first = np.zeros((3, 64), np.int32)
    Emulated(SHUFFLES).launch("shuffles", (1,), (64,), a, down, crossed, first)
    lane, i = np.arange(64) % 32, np.arange(64)
    assert np.array_equal(down, a[np.where(lane + 3 < 32, i + 3, i)])
    assert np.array_equal(crossed, a[i ^ 1])
    assert np.array_equal(first, a[i - lane])


def test_a_lane_keeps_its_value_until_all_have_read_it():
    a = np.arange(32, dtype=np.int32)
    Emulated(BUTTERFLY).launch("butterfly", (1,), (32,), a)
    assert (a == 31 * 32 // 2).all()


@pytest.mark.parametrize(
    "array, error, words",
    [
        (np.zeros(4), TypeError, "expected an array of float32, got float64"),
        ([0.0], TypeError, "got list"),
        (np.float32(3), TypeError, "expected an array of float32, got the number 3.0"),
        (np.zeros((4, 4), np.float32).T, ValueError, "C-contiguous"),
    ],
)
def test_a_wrong_array_is_named(array, error, words):
    with pytest.raises(error, match=words):
        Emulated(REVERSE).launch("reverse", (1,), (4,), array, shared=16)
    with pytest.raises(ValueError, match="expected 1 arguments, got 2"):
        Emulated(REVERSE).launch("reverse", (1,), (4,), np.zeros(4, np.float32), 1)
    with pytest.raises(ValueError, match="name: expected one of reverse, got 'revers'"):
        Emulated(REVERSE).launch("revers", (1,), (4,), array)


def test_no_compiler_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    compiler.compiler.cache_clear()
    with pytest.raises(RuntimeError, match=r"no C\+\+ compiler: install g\+\+ or clang\+\+"):
        compiler.compiler()
    compiler.compiler.cache_clear()


def test_the_compiler_that_conda_names_comes_first(tmp_path, monkeypatch):
    named = tmp_path / "x86_64-conda-linux-gnu-c++"
    named.symlink_to(sys.executable)
    for value, command in ((f"{named} -v", [str(named), "-v"]), ("no-such-compiler", ["g++"])):
        monkeypatch.setenv("CXX", value)
        monkeypatch.setattr(compiler.shutil, "which", lambda name: None if "no-" in name else name)
        compiler.compiler.cache_clear()
        assert compiler.compiler() == command
    compiler.compiler.cache_clear()


def test_clang_records_reads_before_writes(tmp_path, monkeypatch):
    named = tmp_path / "c++"
    named.write_text("#!/bin/sh\necho clang version 19\n")
    named.chmod(0o755)
    monkeypatch.setenv("CXX", str(named))
    compiler.compiler.cache_clear()
    assert compiler.compiler() == [str(named), "-mllvm", "-tsan-instrument-read-before-write"]
    compiler.compiler.cache_clear()


def test_lines_without_tools_are_those_of_the_package_symbolic(monkeypatch):
    at = {7: [("/a/device.h", 3), ("/a/kernel.cu", 12)], 9: [("/a/run", 5)]}
    lookup = lambda place: [SimpleNamespace(full_path=p, line=n) for p, n in at[place]]  # noqa: E731
    one = SimpleNamespace(make_symcache=lambda: SimpleNamespace(lookup=lookup))
    archive = SimpleNamespace(open=lambda path: SimpleNamespace(iter_objects=lambda: iter([one])))
    monkeypatch.setitem(sys.modules, "symbolic", SimpleNamespace(Archive=archive, __spec__=1))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ADDR2LINE", raising=False)
    assert compiler.source_lines(Path("x.so"), 100, (108, 110)) == [12, 0]
    monkeypatch.setitem(sys.modules, "symbolic", None)
    assert compiler.source_lines(Path("y.so"), 100, (108, 110)) == [0, 0]


def test_a_changed_source_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler.files, "folder", lambda name: tmp_path / name)
    for number in (1, 2, 1):
        out = np.zeros(1, np.int32)
        source = f'extern "C" __global__ void k(int* out) {{ out[0] = {number}; }}'
        Emulated(source).launch("k", (1,), (1,), out)
        assert out[0] == number
        if number == 2:
            monkeypatch.setattr(compiler, "compiled", None)  # the third is the first
    made = sorted(file.suffix for file in (tmp_path / "cuda").iterdir())
    assert made in ([".so"] * 2, [".o", ".so", ".so"])  # and the runtime; nothing half made is left


def test_without_a_gpu_the_emulator_is_chosen_and_one_line_says_so():
    there, line = cuda.gpu()
    assert there or "so the emulator runs the kernels" in line
    assert "\n" not in line
    with pytest.raises(ValueError, match="name: expected one of conv, dense, elementwise, fused"):
        cuda.load("convolution")


def cuda_sources():
    """Each source of the package, and each cell of CUDA C that holds a lesson's matter."""
    notebooks = [nbformat.read(path, as_version=4) for path in NOTEBOOKS.glob("3*.ipynb")]
    cells = [cell for notebook in notebooks for cell in notebook.cells]
    matter = [cell.source for cell in cells if "matter" in cell.metadata.get("tags", [])]
    shown = ["//" + text for text in matter if re.match(r"%%cuda \w+\n", text)]
    return [file.read_text() for file in sorted(SOURCES.glob("*.cu"))] + sorted(shown)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("text", cuda_sources(), ids=lambda text: text.split("\n")[0])
def test_nvidias_compiler_accepts_every_source(text, architecture):
    core = pytest.importorskip("cuda.core", reason="pip install 'cnnlab[nvrtc]', for Linux")
    program = core.Program(text, "c++", core.ProgramOptions(arch=architecture))
    assert len(program.compile("cubin").code) > 1000


MINE = """// My own.
extern "C" __global__ void dense_forward(const float* x, float* z)
{
    z[blockIdx.x] = 7;  /* mine */
}
"""


def test_the_cell_magic_compiles_a_cell(ipython):
    from IPython.core.error import UsageError

    shell = ipython
    shell.run_line_magic("load_ext", "cnnlab.cuda")
    shell.run_cell_magic("cuda", "mine", GRID)
    out = np.full(6, -1, np.int32)
    shell.user_ns["mine"].launch("where", (2,), (3,), out, out.size)
    assert out.tolist() == [0, 100, 200, 300, 400, 500]
    shell.run_cell_magic("cuda", "dense_forward in dense", MINE)
    text = shell.user_ns["dense_forward"].source
    assert text.count("dense_forward(") == 1 and "/* mine */" in text and "dense_backward" in text
    with pytest.raises(UsageError, match="source: expected a function other, got none"):
        shell.run_cell_magic("cuda", "other in dense", GRID)
    with pytest.raises(UsageError, match="%%cuda: expected a name"):
        shell.run_cell_magic("cuda", "", GRID)
    with pytest.raises(UsageError, match=r"(?s)%%cuda mine: .*kernel.cu:3.*'b' was not declared"):
        shell.run_cell_magic("cuda", "mine", "__global__ void k(int* a)\n{ a[0] = b; }")


TEXT = 'extern "C" int seven() { return 7; }'


def test_on_a_full_disk_a_library_lies_in_a_folder_of_this_process(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def full(path):
        if tmp_path in path.parents:
            raise OSError(28, "No space left on device")
        with replacing(path) as file:
            yield file

    monkeypatch.setattr(compiler.files, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(compiler, "replacing", full)
    compiler.files.not_kept.cache_clear()
    compiler.own_folder.cache_clear()
    left = Path(tempfile.mkdtemp(prefix=f"cnnlab-cuda-{2**22 + 1}-"))  # of a process that is gone
    with pytest.warns(UserWarning, match="compiled kernels are not kept: No space left on device"):
        library = compiler.build(TEXT)
    assert library.exists() and tmp_path not in library.parents and not left.exists()
    assert compiler.build(TEXT) == library  # and is not compiled again
