"""The machine: its hardware and software, and the two ceilings of its roofline.

`describe` records hardware and versions for every figure (rule 9 of Hoefler and Belli, "Scientific
Benchmarking of Parallel Computing Systems", SC'15). `float32_peak` and `memory_bandwidth` measure
the ceilings of one core (Williams, Waterman and Patterson, "Roofline", CACM 2009). A fact that
cannot be found is None, never an exception.
"""

import functools
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from cnnlab.kernels import lanes, registers
from cnnlab.runtime import thread_pool
from cnnlab.runtime.failures import few

CPUS = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")
LARGEST = 32 << 20  # bytes: an array of this size lies in memory, or in a cache of many cores


def describe() -> dict:
    """The facts about this machine, as a dictionary for JSON.

    Keys: `cpu`, `physical_cores`, `logical_cores` (of the machine), `usable_cores` (of this
    process), `simd`, `simd_lanes` (float32 per vector), `caches` (level to bytes), `memory`
    (bytes), `os`, `python`, `numpy`, `numba`, `threading_layers` (those Numba can load), `mpi`,
    `compiler`, `gpu`. A fact that is unknown is None.
    """
    simd, lanes, _ = registers.detected()
    return {
        "cpu": _cpu(),
        "physical_cores": _physical_cores(),
        "logical_cores": os.cpu_count(),
        "usable_cores": thread_pool.usable_cores(),
        "simd": simd and f"{simd}, {lanes} float32 lanes",
        "simd_lanes": simd and lanes,
        "caches": _caches(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "os": _os(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "threading_layers": _threading_layers(),
        "mpi": _mpi(),
        "compiler": _compiler(),
        "gpu": _gpu(),
    }


def summary() -> str:
    """The facts of `describe` as six lines of text."""
    facts = {key: value or "not found" for key, value in describe().items()}
    caches = _caches() or {"not found": 0}
    sizes = ", ".join(f"{level} {size / 2**10:,.0f} KiB" for level, size in caches.items())
    return """\
processor  {cpu}: {physical_cores} cores; {usable_cores} of {logical_cores} CPUs usable here
vectors    {simd}
memory     {memory:.1f} GiB; caches {caches}
software   {os}; Python {python}, NumPy {numpy}, Numba {numba}
parallel   threads: {threading_layers}; MPI: {mpi}
also       C compiler: {compiler}; GPU: {gpu}""".format_map(
        facts
        | {"caches": sizes, "memory": facts["memory"] / 2**30}
        | {"threading_layers": ", ".join(facts["threading_layers"])}
    )


def caption() -> str:
    """The line under every figure: processor, cores, vectors, caches, versions."""
    cores, sizes = thread_pool.usable_cores(), (_caches() or {}).items()
    parts = [
        _cpu(),
        f"{cores} CPU{'s' * (cores > 1)}",
        registers.detected()[0],
        ", ".join(f"{name} {size >> 10:,} KiB" for name, size in sizes),
        f"Python {platform.python_version()}",
        f"Numba {numba.__version__}",
    ]
    return " · ".join(part for part in parts if part)


@functools.cache
def float32_peak(
    seconds: float = 0.3, lanes: int | None = None, n_sums: int | None = None
) -> float:
    """Measure the float32 peak of one core, in FLOP/s; a fused multiply-add counts as two.

    Runs `n_sums` independent multiply-adds in turn: with one, each waits for the one before; by
    default as many as fit into the registers, so that none waits. `lanes` fixes the vector width
    (1, 4, 8 or 16 floats). By default every width of this processor is measured and the fastest
    counts: wide vectors may lower the clock. The fastest slice of a measurement counts, not the
    median: no kernel may exceed a ceiling.
    """
    if lanes not in (None, 1, 4, 8, 16):
        raise ValueError(f"lanes: expected 1, 4, 8 or 16, got {lanes!r}")
    widths = [lanes] if lanes else _widths()
    return max(_best_rate(*_peak_sweep(width, n_sums), seconds / len(widths)) for width in widths)


def peak_sweep() -> tuple[Callable[[], float], int]:
    """A call that runs at the peak of one core, and its FLOP."""
    return _peak_sweep(max(_widths(), key=lambda width: float32_peak(0.1, width)))


def _widths() -> list[int]:
    """The vector widths of this processor, in float32 lanes."""
    return [n for n in (4, 8, 16) if n <= registers.detected()[1]]


def _peak_sweep(lanes: int, n_sums: int | None = None) -> tuple[Callable[[], float], int]:
    n_sums, n_sweeps = n_sums or 3 * registers.detected()[2] // 4, 200_000
    call = functools.partial(_multiply_adds(lanes, n_sums), n_sweeps)
    return call, 2 * lanes * n_sums * n_sweeps


@functools.cache
def memory_bandwidth(seconds: float = 0.3) -> float:
    """Measure the memory bandwidth of one core, in bytes/s, with STREAM's triad a = b + s c.

    The arrays together are four times the last-level cache (64 to 512 MB). Bytes are counted as in
    STREAM: two reads and one write, without the read that a write may cause. The fastest pass
    counts, for a ceiling (McCalpin, "Memory Bandwidth and Machine Balance", 1995).
    """
    cache = max((_caches() or {}).values(), default=0)
    size = min(max(4 * cache, 64 << 20), 512 << 20) // 12
    a, b, c = (np.full(size, value, np.float32) for value in (0, 1, 2))
    _triad(a[:1], b, c, np.float32(3))
    return _best_rate(lambda: _triad(a, b, c, np.float32(3)), 12 * size, seconds)


@numba.njit
def _triad(a, b, c, s):
    for i in range(a.size):
        a[i] = b[i] + s * c[i]


@functools.cache
def roofs() -> dict[str, float]:
    """Bytes/s that reach one core from each cache, and from memory: the roofs of a roofline.

    The array read takes half of the cache, of a cache of more than LARGEST a quarter of that.
    """
    result = {}
    for name, size in (describe()["caches"] or {}).items():
        a = ones(min(size // 2, LARGEST // 4) // 4)
        times = max(1, (1 << 20) // a.nbytes)
        call = functools.partial(read_all, a, times)
        call()  # compiles
        result[name.removesuffix("d")] = _best_rate(call, a.nbytes * times, 0.2)
    return result | {"memory": memory_bandwidth()}


def ones(n: int) -> np.ndarray:
    """n float32 that begin at the start of a cache line, written: only then are there pages."""
    a = lanes.zeros(n)
    a[:] = 1
    return a


@numba.njit(nogil=True)
def read_all(a, times):
    """The sum of the bits of a (M, divisible by 4), `times` times over: they are added in a cycle.

    A float32 takes several, and the sums that the compiler has grow at once would be the limit.
    """
    total, bits = np.uint64(0), a.view(np.uint64).reshape(2, -1)
    first, second = bits[0], bits[1]
    for _ in range(times):
        for i in range(first.size):
            total += first[i] ^ second[i]
    return total


def _best_rate(run: Callable[[], object], work: float, seconds: float) -> float:
    """The best rate, in work/s, of runs repeated for `seconds`, at least three.

    Just three where CNNLAB_REPEATS asks for fewer.
    """
    slices, end = [], time.perf_counter() + (seconds if few(3) == 3 else 0)
    while len(slices) < 3 or time.perf_counter() < end:
        slices.append(timeit.timeit(run, number=1))
    return work / min(slices)


@functools.cache
def _multiply_adds(lanes: int, n_sums: int) -> Callable[[int], float]:
    """Compile f(n): n times a = a / 2 + 1/4 in each vector of sums (the k-th from k); their total.

    Written in LLVM's language, because the compiler would choose the vector width of a Python loop.
    """
    vector, long = ir.VectorType(ir.FloatType(), lanes), ir.IntType(64)
    may_fuse = ["contract"]  # allows one instruction for multiply and add

    def constant(value):
        return ir.Constant(vector, [value] * lanes)

    @intrinsic
    def multiply_adds(typing_context, n):
        def codegen(context, builder, signature, arguments):
            before = builder.block
            loop, after = (builder.append_basic_block(name) for name in ("loop", "after"))
            builder.branch(loop)
            builder.position_at_end(loop)
            i, *sums = (builder.phi(kind) for kind in [long] + [vector] * n_sums)
            halves = [builder.fmul(a, constant(0.5), flags=may_fuse) for a in sums]
            new = [builder.fadd(a, constant(0.25), flags=may_fuse) for a in halves]
            i_next = builder.add(i, long(1))
            starts = [long(0)] + [constant(float(k)) for k in range(n_sums)]
            for phi, start, following in zip([i, *sums], starts, [i_next, *new], strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(following, loop)
            builder.cbranch(builder.icmp_signed("<", i_next, arguments[0]), loop, after)
            builder.position_at_end(after)
            total = functools.reduce(builder.fadd, new)
            elements = [builder.extract_element(total, long(j)) for j in range(lanes)]
            return functools.reduce(builder.fadd, elements)

        return numba.float32(numba.int64), codegen

    return numba.njit("float32(int64)")(lambda n: multiply_adds(n))


def _cpu() -> str | None:
    """The processor; those that share a name, as in rented machines, differ in family and model."""
    if platform.system() == "Darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    info = _read(CPUINFO) or ""
    kind = re.findall(r"^(?:cpu family|model)\s*: (\d+)$", info, re.MULTILINE)[:2]
    # Processors other than x86 have no "model name" in /proc/cpuinfo, but lscpu knows many.
    for text in (info, _output("lscpu")):
        name = re.search(r"^model name\s*:\s*(\S.*)$", text or "", re.I | re.M)
        if name:
            plain = " ".join(re.sub(r"\((R|TM)\)|CPU", "", name[1], flags=re.I).split())
            return f"{plain}, family {kind[0]} model {kind[1]}" if kind[1:] else plain
    return platform.processor() or None


def _physical_cores() -> int | None:
    if platform.system() == "Darwin":
        return _number(_output("sysctl", "-n", "hw.physicalcpu"))
    siblings = {_read(cpu) for cpu in CPUS.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return len(siblings - {None}) or None


def _caches() -> dict[str, int] | None:
    caches = {}
    if platform.system() == "Darwin":
        for level in ("L1d", "L2", "L3"):
            caches[level] = _number(_output("sysctl", "-n", f"hw.{level.lower()}cachesize"))
    else:
        for index in sorted(CPUS.glob("cpu0/cache/index*")):
            level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
            kilobytes = _number((size or "").removesuffix("K"))
            if level and kilobytes and kind != "Instruction":
                caches[f"L{level}{'d' * (kind == 'Data')}"] = kilobytes * 1024
    return {level: size for level, size in caches.items() if size} or None


def _os() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:  # only Linux has this file
        return platform.platform(terse=True)
    return name + " (WSL)" * ("microsoft" in platform.release().lower())


def _threading_layers() -> list[str]:
    layers = []
    for layer, module in [("tbb", "tbbpool"), ("omp", "omppool"), ("workqueue", "workqueue")]:
        try:
            importlib.import_module(f"numba.np.ufunc.{module}")  # starts no threads
        except ImportError:
            continue
        layers.append(layer)
    return layers


def _mpi() -> str | None:
    """Versions of MPI and mpi4py, from another process: MPI is never loaded into this one."""
    code = (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI;"
        "print(mpi4py.__version__, MPI.Get_library_version())"
    )
    answer = _output(sys.executable, "-c", code)  # 4.1.2 Open MPI v5.0.6, package: … or
    result = re.match(r"(\S+) ([^,\n\0]+)", answer or "")  # 4.1.2 MPICH Version: 5.0.2 \n …
    return result and f"{' '.join(result[2].replace('Version:', '').split())} (mpi4py {result[1]})"


def _compiler() -> str | None:
    # Without Apple's tools, "gcc" on macOS opens a dialogue to install them.
    if platform.system() == "Darwin" and not _output("xcode-select", "-p"):
        return None
    version = _output("gcc", "--version") or _output("clang", "--version")
    return version and version.splitlines()[0]


def _gpu() -> str | None:
    query = "--query-gpu=name,memory.total,driver_version"
    result = _output("nvidia-smi", query, "--format=csv,noheader")
    return result and "; ".join(result.splitlines())


@functools.cache
def _output(*command: str) -> str | None:
    """The output of a command; None if it is missing, fails or takes longer than 10 s."""
    if not shutil.which(command[0]):
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d+", text) else None
