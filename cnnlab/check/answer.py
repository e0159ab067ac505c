"""An answer before and while it runs: what it is made of, and how long it may take."""

import contextlib
import inspect
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator

from numba.core.dispatcher import Dispatcher

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
        module = part if isinstance(part, str) else origin(part)
        if isinstance(part, Strategy) or within(module, STRATEGIES):
            return Verdict(False, f"{operation}: expected a kernel of your own, got one of cnnlab")
    return None


def parallel(function: Callable) -> bool:
    """Whether a kernel, or one that it calls, is compiled with parallel=True."""
    compiled = (part for part in parts(function) if isinstance(part, Dispatcher))
    return any(part.targetoptions.get("parallel") for part in compiled)


def parts(answer) -> Iterator[object]:
    """A function and all that it names, directly or in functions that it calls.

    Globals, modules that it imports, closures and default arguments, what a partial function, a
    method or a list holds; and text, which may be the name of a module.
    """
    waiting, seen = [answer], {}
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part  # kept, so that its id stays its own
        yield part
        if isinstance(part, Dispatcher):
            waiting.append(part.py_func)
        elif isinstance(part, dict | list | tuple | set | frozenset):
            waiting += part.values() if isinstance(part, dict) else part
        elif isinstance(part, types.ModuleType | str) or within(origin(part), FOREIGN):
            continue
        elif isinstance(part, types.FunctionType):
            waiting += named(part)
        elif isinstance(part, type):
            waiting += vars(part).values()
        elif hasattr(part, "__dict__") or callable(part):
            inner = ("__func__", "__self__", "func", "args", "keywords")  # of methods and partials
            waiting += [getattr(part, name) for name in inner if hasattr(part, name)]
            waiting += [type(part), *getattr(part, "__dict__", {}).values()]


def named(function: types.FunctionType) -> list[object]:
    """What the code of a function names: see `parts`."""
    result, codes = (
        [function.__defaults__ or (), function.__kwdefaults__ or ()],
        [function.__code__],
    )
    cells = (cell for cell in function.__closure__ or () if cell != types.CellType())
    result += [cell.cell_contents for cell in cells]
    for code in codes:
        codes += [const for const in code.co_consts if inspect.iscode(const)]
        result += [const for const in code.co_consts if isinstance(const, str)]
        modules = [sys.modules[name] for name in code.co_names if name in sys.modules]
        known = function.__globals__
        values = [known[name] for name in code.co_names if name in known]
        for value in (*modules, *values):
            while isinstance(value, types.ModuleType) and within(value.__name__, ("cnnlab",)):
                inner = [vars(value)[name] for name in code.co_names if name in vars(value)]
                result += inner
                value = next((i for i in inner if isinstance(i, types.ModuleType)), None)
            result.append(value)
    return result


def origin(part) -> str:
    """The module that something is, or comes from."""
    part = getattr(part, "py_func", part)
    if isinstance(part, types.ModuleType):
        return part.__name__
    group = part if isinstance(part, type | types.FunctionType) else type(part)
    return str(getattr(group, "__module__", ""))


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

    within_time = True

    def stop(*_):
        if within_time:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    # Again and again: Python drops what is raised while it collects garbage.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        try:
            yield
        finally:  # where it may still be raised, once
            within_time = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
