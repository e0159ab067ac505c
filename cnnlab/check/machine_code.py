"""Check the machine code of a compiled kernel: count its vector instructions."""

import re
from collections.abc import Callable

import numba

from cnnlab.check.operation import exercise
from cnnlab.check.verdict import Verdict


def vector_instructions(kernel) -> int:
    """The number of float32 vector instructions in a compiled Numba kernel.

    Counts packed multiplies, additions and fused multiply-adds: names that end in `ps` on x86,
    operands like `v0.4s` on ARM. Raises ValueError if the kernel has not been compiled.
    """
    if not kernel.signatures:
        got = f"{kernel.__name__}, which is not compiled yet"
        raise ValueError(f"kernel: expected one with machine code, got {got}")
    if kernel.stats.cache_hits:  # code loaded from the cache cannot be inspected: compile it again
        signatures = kernel.signatures
        kernel = numba.jit(**kernel.targetoptions)(kernel.py_func)
        for signature in signatures:
            kernel.compile(signature)
    assembly = kernel.inspect_asm().values()
    x86 = re.compile(r"^\s*v?(?:fn?m(?:add|sub)\d*|mul|add)ps\s", re.MULTILINE)
    arm = re.compile(r"^\s*f(?:mla|mul|add)\s+v\d+\.4s", re.MULTILINE)
    return sum(len(x86.findall(text)) + len(arm.findall(text)) for text in assembly)


def vectorized(operation: str, function: Callable, **options) -> bool:
    """Like `exercise`, for a Numba kernel that must also compile to vector instructions."""
    if not exercise(operation, function, **options):
        return False
    if not hasattr(function, "inspect_asm"):
        text = "expected a compiled kernel, got plain Python: decorate it with @numba.njit"
        return Verdict(False, f"{operation}: {text}").report()
    count = vector_instructions(function)
    text = f"{operation}: {count} vector instructions in its machine code"
    return Verdict(count > 0, text).report()
