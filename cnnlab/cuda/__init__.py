"""CUDA C: the sources of the kernels, and the two devices that run them.

conv.cu, pool.cu, dense.cu and elementwise.cu have the operations one by one, fused.cu some at once,
step.cu a whole training step.

`load("conv")` gives the kernels of conv.cu. They run on an NVIDIA GPU through CuPy if there is one,
and on the emulator otherwise. Within `traced()` the emulator runs them and logs every access.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from cnnlab.cuda.arguments import function_in
from cnnlab.cuda.launcher import Launcher
from cnnlab.runtime.arguments import one_of

SOURCES = Path(__file__).parent
_tracer: Callable[["Kernels"], Launcher] | None = None  # within `traced`


@functools.cache
def gpu() -> tuple[bool, str]:
    """Whether a GPU can be used, and one line that names it or says why not."""
    try:
        import cupy
    except ImportError:
        return False, "no GPU: CuPy is not installed, so the emulator runs the kernels on this CPU"
    try:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return False, f"no GPU ({error}), so the emulator runs the kernels on this CPU"
    try:
        cupy.cuda.nvrtc.getVersion()
    except (ImportError, OSError, RuntimeError):
        return False, (
            f"no compiler for the GPU {name}: CuPy finds no NVRTC (pip install -U "
            "'cupy-cuda12x[ctk]'), so the emulator runs the kernels on this CPU"
        )
    return True, f"GPU: {name}"


def where() -> str:
    """The device in a few words, for the title of a plot."""
    return gpu()[1] if gpu()[0] else "the emulator, on one core"


class Kernels(Launcher):
    """The kernels of one CUDA C source, launched on the GPU or the emulator."""

    def __init__(self, source: str):
        super().__init__(source)
        if gpu()[0]:
            from cnnlab.cuda.cupy_device import OnGpu as Device
        else:
            from cnnlab.cuda.emulator import Emulated as Device
        self.source, self._own = source, Device(source)  # compiled now: errors show at once

    def _device(self) -> Launcher:
        return _tracer(self) if _tracer else self._own

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        return self._device()._prepare(name, sizes, arguments, shared)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        self._device()._run(name, sizes, arguments, shared)


@functools.cache
def load(name: str, **macros: str) -> Kernels:
    """The kernels of the course's source `name`.cu, with these macros; ValueError if there is none.

    Sizes that a compiler knows let it unroll loops and keep arrays in registers.
    """
    names = sorted(file.stem for file in SOURCES.glob("*.cu"))
    one_of("name", name, names)
    text = (SOURCES / f"{name}.cu").read_text(encoding="utf-8")
    defined = "".join(f"#define {macro} {value}\n" for macro, value in macros.items())
    return Kernels(f"{defined}#line 1\n{text}" if macros else text)


def trace_of(source: str, name: str, grid: Sequence[int], block: Sequence[int], *arguments):
    """The trace of one launch of a source's kernel, on the emulator wherever this runs."""
    from cnnlab.cuda.emulator.traced import Traced

    kernels = Traced(source)
    kernels.launch(name, grid, block, *arguments)
    return kernels.trace


@contextlib.contextmanager
def traced(most: int | None = None, schedule: int = 0) -> Iterator[list]:
    """Run all kernels of a `with` block on the emulator; yield the list of their traces.

    A thread runs until it waits. With a `schedule` of 1 or more, blocks come in a random order, and
    in a block a random warp makes the next access: which ones, the number decides.

    Of a launch with more than `most` accesses, by default millions, some blocks are traced, and the
    trace says so. A trace has faults, coalescing, bank conflicts and requests, see
    `cnnlab.cuda.emulator.trace`; which sectors it touches it has of all blocks, even where `most`
    is 0, see `cnnlab.cuda.emulator.cache`.
    """
    from cnnlab.cuda.emulator.traced import Traced

    global _tracer
    traces: list = []
    outer = _tracer
    _tracer = functools.cache(lambda mine: Traced(mine.source, traces, most, schedule))
    try:
        yield traces
    finally:
        _tracer = outer


def array_module():
    """CuPy if kernels run on a GPU, else NumPy: `array_module().empty` is memory for kernels."""
    if gpu()[0]:
        import cupy

        return cupy
    import numpy

    return numpy


def graph(stages: Sequence[Sequence[Callable[[], None]]]) -> Callable[[], None]:
    """One call that makes all the prepared calls, stage by stage.

    On a GPU it is a CUDA graph, and calls of a stage may overlap; the emulator makes them in turn.
    """
    if gpu()[0] and _tracer is None:
        from cnnlab.cuda.cupy_device import capture

        return capture(stages)

    def replay() -> None:
        for call in chain.from_iterable(stages):
            call()

    return replay


def wait() -> None:
    """Wait until the device has finished all launches; the emulator always has."""
    if gpu()[0]:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()


def seconds(call: Callable[[], object]) -> float:
    """The seconds that a GPU takes for the launches of a call, between two events: it needs one.

    Before them it is kept busy for a millisecond, so that it does not wait for the host.
    """
    import cupy

    from cnnlab.cuda.cupy_device import hold

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    hold()()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) / 1e3  # from ms


def load_ipython_extension(ipython) -> None:
    """Register the cell magic: `%%cuda mine` compiles its cell's CUDA C to the kernels `mine`.

    `%%cuda convolve in step` compiles step.cu with the cell's function `convolve` in place of its
    own, to the kernels `convolve`. Without a C++ compiler, cells that need one show what is stored.
    """
    from IPython.core.error import UsageError  # shown as one line, without a traceback

    from cnnlab.cuda import stored
    from cnnlab.cuda.emulator.compiler import NoCompiler

    def cuda(line: str, cell: str) -> None:
        name, _, file = line.strip().partition(" in ")
        if not name.isidentifier():
            raise UsageError(f"%%cuda: expected a name, as in %%cuda mine, got {name!r}")
        text = "\n" + cell  # so that line numbers are the cell's
        try:
            if file:
                whole = load(file.strip()).source
                old = function_in(whole, name).span()
                text = whole[: old[0]] + function_in(cell, name)[0] + whole[old[1] :]
            ipython.user_ns[name] = Kernels(text)
        except NoCompiler:
            raise
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"%%cuda {name}: {error}") from error

    stored.stand_in(ipython)
    ipython.register_magic_function(cuda, "cell")
