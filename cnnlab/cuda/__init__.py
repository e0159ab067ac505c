"""CUDA C: the sources of the kernels, and the two devices that run them.

`load("conv")` gives the kernels of conv.cu. They run on an NVIDIA GPU if there is one, through
CuPy, and on the emulator otherwise. Within `traced()` it is the emulator, noting every access.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cnnlab.cuda.launcher import Launcher

SOURCES = Path(__file__).parent
_traces: list | None = None


@functools.cache
def gpu() -> tuple[bool, str]:
    """Whether there is a GPU to use, and one line about it."""
    try:
        import cupy
    except ImportError:
        return False, "no GPU: CuPy is not installed, so the emulator runs the kernels on this CPU"
    try:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return False, f"no GPU ({error}), so the emulator runs the kernels on this CPU"
    return True, f"GPU: {name}"


def where() -> str:
    """The device in a few words, for the title of a measurement."""
    return gpu()[1] if gpu()[0] else "the emulator, on one core"


class Kernels(Launcher):
    """The kernels of one CUDA C source, launched on the device that is there."""

    def __init__(self, source: str):
        super().__init__(source)
        self.source = source
        device(source)  # so that what does not compile is said at once

    def _here(self) -> Launcher:
        return device(self.source) if _traces is None else traced_device(self.source, _traces)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        return self._here()._prepare(name, sizes, arguments, shared)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        self._here()._run(name, sizes, arguments, shared)


@functools.cache
def load(name: str) -> Kernels:
    """The kernels of one of the course's sources; ValueError for an unknown name."""
    names = sorted(file.stem for file in SOURCES.glob("*.cu"))
    if name not in names:
        raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")
    return Kernels((SOURCES / f"{name}.cu").read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=64)
def device(source: str) -> Launcher:
    """The kernels of a source on the device that is there."""
    if gpu()[0]:
        from cnnlab.cuda.cupy_device import OnGpu

        return OnGpu(source)
    from cnnlab.cuda.emulator import Emulated

    return Emulated(source)


def traced_device(source: str, traces: list) -> Launcher:
    """The kernels of a source on the emulator, with a trace of each launch appended to `traces`."""
    from cnnlab.cuda.emulator.traced import Traced

    kernels = Traced(source)
    kernels.traces = traces
    return kernels


@contextlib.contextmanager
def traced() -> Iterator[list]:
    """Within it, all kernels run on the emulator, and each launch appends its trace to the list.

    A trace tells faults, coalescing, bank conflicts and traffic, see `cnnlab.cuda.emulator.trace`.
    """
    global _traces
    outer, _traces = _traces, []
    try:
        yield _traces
    finally:
        _traces = outer


def array_module():
    """CuPy where kernels run on a GPU, else NumPy: `array_module().empty` is memory for kernels."""
    if gpu()[0]:
        import cupy

        return cupy
    import numpy

    return numpy


def graph(stages: Sequence[Sequence[Callable[[], None]]]) -> Callable[[], None]:
    """One call that makes many launches: prepared calls, those of a stage at the same time.

    On a GPU a CUDA graph; the emulator makes one call after the other.
    """
    if gpu()[0]:
        from cnnlab.cuda.cupy_device import capture

        return capture(stages)
    calls = [call for stage in stages for call in stage]

    def replay() -> None:
        for call in calls:
            call()

    return replay


def wait() -> None:
    """Return when the device has done all that it was given; the emulator always has."""
    if gpu()[0]:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()


def load_ipython_extension(ipython) -> None:
    """`%load_ext cnnlab.cuda`: `%%cuda mine` compiles the CUDA C of its cell to kernels `mine`."""

    from IPython.core.error import UsageError  # shown as one line, without a traceback

    def cuda(line: str, cell: str) -> None:
        name = line.strip()
        if not name.isidentifier():
            raise UsageError(f"%%cuda: expected a name, such as in %%cuda mine, got {name!r}")
        try:
            ipython.user_ns[name] = Kernels("\n" + cell)  # so that lines count as in the cell
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"%%cuda {name}: {error}") from error

    ipython.register_magic_function(cuda, "cell")
