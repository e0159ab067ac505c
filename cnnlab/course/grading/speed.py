"""How fast a kernel of an answer is, beside `vector`: measured from outside, and proved each time.

An answer's own clock is not asked. All times are those of whole calls, there and back, less those
of a call that computes nothing; the three take turns. Each call has new numbers, and what a timed
call has written is checked.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cnnlab.check import operation
from cnnlab.check.inputs import Case, case
from cnnlab.check.verdict import Verdict
from cnnlab.course.grading.sandbox import Sandbox

REPEATS = 11  # the first of which compiles, and does not count
IMAGES = case("many images of the network", 256, 1, 6, 28, 28, 5, D=216, O=10)
MAPS = case("many maps of the network", 256, 6, 1, 24, 24, 4, 4, ndim=4)
BASE = """
from cnnlab.kernels import find
def nothing(*arrays, **stride): pass
kernels = {{"base": getattr(find("vector"), "{name}"), "nothing": nothing}}
def called(which, *arrays, **stride): kernels[which](*arrays, **stride)
"""


def sizes(name: str) -> Case:
    """The sizes at which an operation is timed: those of the network's layers."""
    return IMAGES if name.startswith(("conv", "dense")) else MAPS


def beside_vector(name: str, kernel: Callable, base: Sandbox, least: float) -> Verdict:
    """The verdict on a kernel that should reach `least` times the speed of `vector`.

    It is given the benefit of the doubt: only if the whole range lies below that does it fail.
    `base` is a sandbox with all kernels of cnnlab.
    """
    base.call("start", BASE.format(name=name), "called")
    rows = []

    def timed(*arrays, **stride):
        times = []
        for which in ("nothing", "base"):
            given = [which, *(array.copy() for array in arrays)]
            times.append(
                seconds(lambda given=given: base.call("call", *given, options=stride)),
            )
        rows.append([*times, seconds(lambda: kernel(*arrays, **stride))])

    verdict = operation.kernel(name, timed, cases=[sizes(name)], repeats=REPEATS)
    if not verdict:
        return verdict
    low, high = ratio(np.array(rows[1:]))
    text = f"{name}: {low:.2g} to {high:.2g} times the speed of vector, asked for {least:g}"
    return replace(verdict, passed=bool(high >= least), text=text)


def ratio(seconds: np.ndarray) -> tuple[float, float]:
    """The range of a speed beside the base's, from seconds (n, 3): of nothing, the base, and it.

    From the quarter of each that is shortest to the quarter that is longest; infinite where a
    kernel takes no longer than nothing does.
    """
    short, long = np.percentile(seconds, (25, 75), axis=0)
    low = max(short[1] - long[0], 0) / max(long[2] - short[0], 1e-9)
    rest = short[2] - long[0]
    return float(low), float((long[1] - short[0]) / rest) if rest > 0 else np.inf


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes, by the grader's clock."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
