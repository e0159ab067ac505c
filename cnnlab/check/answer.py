"""An answer before and while it runs: what it is made of, and how long it may take."""

import contextlib
import inspect
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator

from numba.core.dispatcher import Dispatcher

from cnnlab import kernels
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import KERNELS, Strategy

STRATEGIES = tuple(f"cnnlab.kernels.{name}" for name in KERNELS)
FOREIGN = ("numpy", "numba", "scipy", "cnnlab")  # packages into whose functions nobody looks


def judge(operation: str, function: Callable, kernel: Callable, options: dict) -> Verdict:
    """The verdict on an answer: that of `kernel`, unless it is borrowed."""
    verdict = borrowed(operation, function)
    return kernel(operation, function, **options) if verdict is None else verdict


def borrowed(operation: str, function: Callable) -> Verdict | None:
    """The verdict on an answer that is a strategy's kernel, or names one; None on any other."""
    for part in parts(function):
        if part is KERNELS or isinstance(part, Strategy) or within(origin(part), STRATEGIES):
            return Verdict(False, f"{operation}: expected a kernel of your own, got one of cnnlab")
    return None


def parallel(function: Callable) -> bool:
    """Whether a kernel, or one that it calls, is compiled with parallel=True."""
    compiled = (part for part in parts(function) if isinstance(part, Dispatcher))
    return any(part.targetoptions.get("parallel") for part in compiled)


def parts(answer) -> Iterator[object]:
    """A function and what its code names, and so on for the functions among these.

    Globals and modules, closures and default arguments; nobody looks into functions of packages.
    """
    waiting, seen = [answer], {}
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen[id(part)] = part  # kept, so that its id stays its own
            yield part
            function = getattr(part, "py_func", part)
            if inspect.isfunction(function) and not within(origin(function), FOREIGN):
                waiting += named(function)
            if callable(part) and not within(type(part).__module__, (*FOREIGN, "builtins")):
                waiting += vars(part).values()  # of an object that is called as a function is


def named(function: types.FunctionType) -> list[object]:
    """What the code of a function names, and that of functions in it."""
    cells = (cell for cell in function.__closure__ or () if cell != types.CellType())
    result, codes = [cell.cell_contents for cell in cells], [function.__code__]
    result += function.__defaults__ or ()
    for code in codes:
        codes += filter(inspect.iscode, code.co_consts)
        known = sys.modules | function.__globals__
        values = [known[name] for name in code.co_names if name in known]
        modules = [v for v in values if inspect.ismodule(v) and within(v.__name__, ("cnnlab",))]
        for module in [*modules, *[kernels] * bool(modules)]:  # cnnlab.kernels.loops
            values += [vars(module)[name] for name in code.co_names if name in vars(module)]
        result += values
    return result


def origin(part) -> str:
    """The module that something is, or comes from."""
    part = getattr(part, "py_func", part)
    return str(getattr(part, "__name__" if inspect.ismodule(part) else "__module__", ""))


def within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these packages, or in one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


class OutOfTime(BaseException):
    """Raised in an answer that takes too long; no `except Exception` of its own stops it."""


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the `with` block after `seconds`.

    Between two steps of Python: a compiled loop that never ends is beyond reach, also of Ctrl-C; it
    stops with its process (in a notebook: restart the kernel). There is no limit in threads other
    than the main one, and on Windows.
    """
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return

    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    # Again and again: Python drops what is raised while it collects garbage.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, min(seconds, 1.0))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
