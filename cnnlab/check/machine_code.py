"""Check the machine code of a compiled kernel: count its vector instructions."""

import re
from collections.abc import Callable

import numba

from cnnlab.check.operation import kernel as against_reference
from cnnlab.check.verdict import Verdict

X86 = r"^\s*v?(?:fn?m(?:add|sub)\d*|mul|add)ps\s"
ARM = r"^\s*f(?:mla|mul|add)(?:\.4s\s+v\d+|\s+v\d+\.4s)"  # as Apple writes it, and all others
ARITHMETIC = re.compile(f"{X86}|{ARM}", re.MULTILINE)
# A multiplication: of one float32 (s), or of the vector that is named after it.
MULTIPLY = re.compile(
    r"^\s*v?(?:fn?m(?:add|sub)\d*|mul)([sp])s\s.*%([xyz])mm|^\s*f(?:mul|mla|madd)\S*\s+([sv])\d",
    re.MULTILINE,
)
WIDTHS = {"x": 4, "y": 8, "z": 16, "v": 4}
# A vector on the stack: `%rsp` on x86, whose 64-bit integers go there with other instructions; on
# ARM a register q0 to q31 whose address begins with sp.
SPILL = re.compile(r"^\s*v?mov[au]ps\b.*%rsp|^\s*\w+\s+q\d+.*\[sp", re.MULTILINE)


def assembly(kernel) -> str:
    """The machine code of a compiled Numba kernel, as text, for all its signatures.

    Raises ValueError if the kernel has not been compiled.
    """
    if not kernel.signatures:
        got = f"{kernel.__name__}, which is not compiled yet"
        raise ValueError(f"kernel: expected one with machine code, got {got}")
    if kernel.stats.cache_hits:  # code loaded from the cache cannot be inspected: compile it again
        signatures = kernel.signatures
        kernel = numba.jit(**kernel.targetoptions)(kernel.py_func)
        for signature in signatures:
            kernel.compile(signature)
    return "\n".join(kernel.inspect_asm().values())


def vector_instructions(kernel) -> int:
    """The number of float32 vector instructions in a compiled Numba kernel.

    Counts packed multiplies, additions and fused multiply-adds: names that end in `ps` on x86,
    operands like `v0.4s` on ARM. Raises ValueError if the kernel has not been compiled.
    """
    return len(ARITHMETIC.findall(assembly(kernel)))


def innermost(code: str) -> list[str]:
    """The innermost loops of machine code as text: between a label and a jump back to it."""
    loop = r"^(\.?LBB\w+):((?:(?!^\.?LBB).*\n)*?)\s+[jbct]\S*\s.*\1$"
    return [body for _, body in re.findall(loop, code, re.MULTILINE)]


def loops(kernel) -> dict[int, int]:
    """The innermost loops of a compiled kernel that multiply, by multiplications in a pass.

    Of each, its instructions. The longest loop comes first.
    """
    result = {}
    for body in innermost(assembly(kernel)):
        seen = MULTIPLY.findall(body)
        terms = sum(1 if "s" in (kind, arm) else WIDTHS[wide or arm] for kind, wide, arm in seen)
        result |= {terms: len(re.findall(r"^\s+[a-z]", body, re.MULTILINE)) + 1} if terms else {}
    return dict(sorted(result.items(), reverse=True))


def passes(kernel, trips: int) -> str:
    """How often each of these loops runs for so many multiplications, such as "0 × 64, 3 × 8"."""
    said = []
    for terms, instructions in loops(kernel).items():
        said.append(f"{trips // terms} × {terms} ({instructions})")
        trips %= terms
    return ", ".join(said)


def hot_loop(code: str) -> str:
    """Of machine code as text, the innermost loop with the most vector arithmetic; "" if none."""
    return max(innermost(code), key=lambda body: len(ARITHMETIC.findall(body)), default="")


def spills(kernel) -> int:
    """How often the hot loop of a compiled kernel moves a vector to the stack or back.

    Raises ValueError if the kernel has not been compiled.
    """
    return len(SPILL.findall(hot_loop(assembly(kernel))))


def kernel(operation: str, function: Callable, **options) -> Verdict:
    """The verdict on a Numba kernel that must also compile to vector instructions."""
    verdict = against_reference(operation, function, **options)
    if not verdict:
        return verdict
    if not hasattr(function, "inspect_asm"):
        text = "expected a compiled kernel, got plain Python: decorate it with @numba.njit"
        return Verdict(False, f"{operation}: {text}")
    count = vector_instructions(function)
    result = f"; {count}" if count else ", but there are no"
    return Verdict(count > 0, f"{verdict.text}{result} vector instructions in its machine code")
