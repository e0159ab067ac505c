"""CUDA C of an answer: compiled and launched behind the wall, its accesses judged before it."""

import dataclasses
import functools
import re

import numpy as np

from cnnlab import cuda
from cnnlab.course.grading.values import Broken
from cnnlab.cuda.arguments import code
from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.faults import Array, Fault
from cnnlab.cuda.emulator.trace import Trace
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.cuda.launcher import Launcher

# No kernel needs these, and on the emulator they would reach the system.
FOREIGN = re.compile(
    r"#\s*(?:include|pragma|import)|##|\b_{0,2}asm(?:__)?\b|__attribute__|__builtin_\w+|\b(?:system|"
    r"popen|fork|exec[lv]\w*|syscall|dlopen|dlsym|mmap|mprotect|kill|ptrace|socket|open|fopen|\w*fstream)\b"
)


def refused(source: str) -> str:
    """What in a source is no CUDA C for a device, in words; "" if nothing."""
    found = FOREIGN.search(code(source))
    return f"a kernel has no use for `{found[0].strip()}`" if found else ""


# --- behind the wall ----------------------------------------------------------------------------


@functools.cache
def compiled(source: str, traced: bool) -> Launcher:
    """The kernels of a source on the emulator."""
    return Traced(source) if traced else Emulated(source)


def launch(source: str, traced: bool, name: str, sizes: list, arguments: tuple, shared: int):
    """Launch a kernel; return the traces, as data, and what went wrong, or ""."""
    kernels = compiled(source, traced)
    kernels.traces = []
    try:
        kernels.launch(name, sizes[:3], sizes[3:], *arguments, shared=shared)
        wrong = ""
    except RuntimeError as error:
        wrong = str(error)
    return [as_data(trace) for trace in kernels.traces], wrong


def as_data(trace: Trace) -> dict:
    """A trace as names and arrays."""
    found = {}
    for each in dataclasses.fields(trace):
        value = getattr(trace, each.name)
        if isinstance(value, np.ndarray) and value.dtype == np.int64:
            narrow = value.astype(np.int32)
            value = narrow if (narrow == value).all() else value
        elif each.name in ("arrays", "compiler"):
            value = [vars(one) for one in value]
        found[each.name] = value
    return found


# --- before it ----------------------------------------------------------------------------------


def trace_of(data: dict) -> Trace:
    """The trace that data stand for; raises Broken if they are none."""
    try:
        arrays = [Array(**each) for each in data["arrays"]]
        faults = [Fault(**each) for each in data["compiler"]]
        columns = {
            name: value.astype(np.int64) if isinstance(value, np.ndarray) else value
            for name, value in data.items()
        }
        return Trace(**columns | {"arrays": arrays, "compiler": faults})
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise Broken(f"no trace: {error}") from None


class Kernels(Launcher):
    """Kernels of an answer: launches go to the sandbox, and their traces to `cuda.traced()`."""

    def __init__(self, source: str, box):
        super().__init__(source)
        self.source, self.box = source, box

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        traced = cuda._traces is not None
        given = self.source, traced, name, tuple(sizes), tuple(arguments), shared
        traces, wrong = self.box.call("launch", *given)
        if traced:
            cuda._traces += [trace_of(data) for data in traces]
        if wrong:
            raise RuntimeError(wrong)
