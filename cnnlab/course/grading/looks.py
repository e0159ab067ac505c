"""Look into an answer: the accesses of its loops, its machine code, its messages.

This runs behind the wall, with an answer that `vet` has read before and with nothing else of the
student's, so that nobody is there who could change what is seen.
"""

from collections.abc import Callable

import numpy as np

from cnnlab.check import machine_code, threads
from cnnlab.check.inputs import STRIDE_ONE, chosen
from cnnlab.check.operation import try_case
from cnnlab.ranks.virtual import examine

PLAIN = 6  # cases that a kernel is compiled with


def parallel(answer: Callable, operation: str) -> str:
    """What is wrong with a kernel that should be parallel, and may not be."""
    return "" if threads.parallel(answer) else "not parallel: @numba.njit(parallel=True) is missing"


def races(answer: Callable, operation: str) -> str:
    """What is wrong with the loops of a parallel kernel, from the log of its accesses; "" if not.

    A kernel that plain Python cannot follow is not told from one that is right.
    """
    found = threads.follow(operation, answer, {})
    return "" if found is None or found else found.text


def vectors(answer: Callable, operation: str) -> str:
    """What is wrong with the machine code of a kernel; "" if it has vector instructions."""
    if not hasattr(answer, "inspect_asm"):
        return "expected a compiled kernel, got plain Python: decorate it with @numba.njit"
    for case in chosen(operation, STRIDE_ONE)[:PLAIN]:
        try_case(operation, answer, case)
    count = machine_code.vector_instructions(answer)
    return "" if count else "no vector instruction in its machine code"


def messages(answer: Callable, operation: str) -> str:
    """The faults of a rank program in the virtual world, whatever the luck; "" if there is none."""
    for size in (2, 3, 4, 5):

        def program(comm):
            array = np.arange(7, dtype=np.float32) + comm.rank
            answer(comm, array)
            return array

        if found := examine(program, size):
            return f"on {size} ranks: {found[0]}"
    return ""


LOOKS = {"parallel": parallel, "races": races, "vectors": vectors, "messages": messages}
