"""What a compiled kernel became: its instructions, counted."""

import re

import numba


def vector_instructions(kernel) -> int:
    """How many instructions of a compiled Numba kernel work on several float32 at once.

    Counts packed multiplies, additions and fused multiply-adds: names ending in `ps` on x86,
    operands such as `v0.4s` on ARM. Raises ValueError if the kernel has not been compiled.
    """
    if not kernel.signatures:
        raise ValueError(f"kernel: {kernel.__name__} is not compiled yet; call it once")
    if kernel.stats.cache_hits:  # code kept from an earlier run cannot be inspected: compile anew
        signatures = kernel.signatures
        kernel = numba.jit(**kernel.targetoptions)(kernel.py_func)
        for signature in signatures:
            kernel.compile(signature)
    assembly = kernel.inspect_asm().values()
    x86 = re.compile(r"^\s*v?(?:fn?m(?:add|sub)\d*|mul|add)ps\s", re.MULTILINE)
    arm = re.compile(r"^\s*f(?:mla|mul|add)\s+v\d+\.4s", re.MULTILINE)
    return sum(len(x86.findall(text)) + len(arm.findall(text)) for text in assembly)
