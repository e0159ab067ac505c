"""Check a parallel kernel: its numbers on several threads, and its loops for races."""

from collections.abc import Callable

import numpy as np
from numba.core.errors import NumbaError

from cnnlab.check.access_log import race
from cnnlab.check.answer import OutOfTime, limit, parallel
from cnnlab.check.inputs import CROWDS, STRIDE_ONE, draw
from cnnlab.check.operation import at, stride_of
from cnnlab.check.operation import kernel as against_reference
from cnnlab.check.verdict import Verdict
from cnnlab.runtime import thread_pool

PATIENCE = 60  # seconds for a kernel as plain Python


def kernel(operation: str, function: Callable, **options) -> Verdict:
    """The verdict on a parallel kernel: on 1, 2, 3 and up to 16 threads, many times.

    A race may not show in one run, so large cases run many times on each number of threads. If
    plain Python can follow the loops, it finds iterations that race, and fewer runs suffice. Uses
    at most the threads that Numba made room for, see `cnnlab.runtime.thread_pool`.
    """
    for n_threads in sorted({min(n, thread_pool.size()) for n in (1, 2, 3, 16)}):
        with thread_pool.threads(n_threads):
            followed = follow(operation, function, options) if n_threads > 1 else None
            verdict = Verdict(True, "") if followed is None else followed
            if verdict:
                verdict = against_reference(operation, function, cases=STRIDE_ONE, **options)
            for _ in range(1 if n_threads == 1 else 3 if followed else 12):
                if verdict:
                    verdict = against_reference(operation, function, cases=CROWDS, **options)
        if not verdict:
            threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
            right = "" if n_threads == 1 else "right on fewer, and "
            return Verdict(False, f"on {threads} ({right}wrong here): {verdict.text}")
        if not parallel(function):
            text = "right on 1 thread, and not parallel: decorate it with"
            return Verdict(False, f"{operation}: {text} @numba.njit(parallel=True)")
    text = f"{operation} agrees with the reference on 1 to {n_threads} threads"
    return Verdict(True, text)


def follow(operation: str, function: Callable, options: dict) -> Verdict | None:
    """The verdict on the loops of a parallel kernel, on several images; see `access_log.race`.

    None if the kernel cannot be followed as plain Python: then only repeated runs can show a race.
    """
    case = STRIDE_ONE[2].suited(operation)
    options = stride_of(operation, case) | options
    try:
        with np.errstate(all="ignore"), limit(PATIENCE):  # outputs hold NaN before they are written
            result = race(function, draw(operation, case), **options)
    except (TypeError, AttributeError, NumbaError):
        return None
    except OutOfTime:
        return Verdict(False, f"{at(case)}: not done after {PATIENCE} seconds as plain Python")
    except IndexError as error:
        return Verdict(False, f"{at(case)}: {error}")
    return Verdict(result is None, f"{at(case)}: {result}")
