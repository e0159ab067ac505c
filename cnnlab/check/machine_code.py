"""Check the machine code of a compiled kernel: count its vector instructions."""

import functools
import math
import re
from collections.abc import Callable

import numba
from numba.core.codegen import JITCPUCodegen

from cnnlab.check.operation import kernel as against_reference
from cnnlab.check.verdict import Verdict

if numba.version_info.short == (0, 60):  # chooses LLVM's passes once: NUMBA_LOOP_VECTORIZE is late
    JITCPUCodegen._mpm_full = property(lambda own: own._module_pass_manager(), lambda *_: None)

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

MEMORY = re.compile(r"^\s+(?!lea)\S.*[(\[]")  # `lea` only computes an address
CALL = re.compile(r"^\s+(?:call\w*|bl)\s", re.MULTILINE)
# An operation on a vector, and none that only moves one or clears it.
PACKED = re.compile(
    r"^\s+v?(?!mov|xor|and|or|insert|unpck|shuf|perm)\w+p[sd]\s|\.[24][sd]\b", re.MULTILINE
)


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
    return _text(kernel, tuple(kernel.signatures))


@functools.lru_cache(maxsize=32)
def _text(kernel, signatures) -> str:
    return "\n".join(kernel.inspect_asm().values())  # LLVM writes it anew each time


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


def bodies(kernel) -> dict[int, str]:
    """The innermost loops of a compiled kernel that multiply, by multiplications in a pass.

    The longest loop comes first.
    """
    result = {}
    for body in innermost(assembly(kernel)):
        seen = MULTIPLY.findall(body)
        terms = sum(1 if "s" in (kind, arm) else WIDTHS[wide or arm] for kind, wide, arm in seen)
        result |= {terms: body} if terms else {}
    return dict(sorted(result.items(), reverse=True))


def instructions(body: str) -> list[str]:
    """The instructions of a loop's body, a line each; the jump back is not among them."""
    return re.findall(r"^\s+[a-z].*", body, re.MULTILINE)


def loops(kernel) -> dict[int, int]:
    """The instructions of each of these loops, with the jump back, by multiplications in a pass."""
    return {terms: len(instructions(body)) + 1 for terms, body in bodies(kernel).items()}


def passes(kernel, trips: int) -> str:
    """How often each of these loops runs for so many multiplications, such as "0 × 64, 3 × 8"."""
    said = []
    for terms, n_instructions in loops(kernel).items():
        said.append(f"{trips // terms} × {terms} ({n_instructions})")
        trips %= terms
    return ", ".join(said)


def counts(kernel, trips: float = math.inf) -> tuple[int, int, int, int]:
    """Loads, stores, multiplications and instructions of the longest loop that `trips` can fill.

    A trip is a multiplication of one number; the jump back counts as an instruction.
    """
    body = next(body for terms, body in bodies(kernel).items() if terms <= trips)
    lines = [line.rstrip() for line in instructions(body) if MEMORY.search(line)]
    stores = sum(line.endswith(")") or line.lstrip().startswith("st") for line in lines)  # x86, ARM
    n_terms, n_instructions = len(MULTIPLY.findall(body)), len(instructions(body)) + 1
    return len(lines) - stores, stores, n_terms, n_instructions


def per_term(kernel) -> tuple[float, float]:
    """Memory operations and instructions of the longest loop, for each multiplication in it."""
    loads, stores, terms, n_instructions = counts(kernel)
    return (loads + stores) / terms, n_instructions / terms


def compiled(kernel) -> str:
    """What the innermost loops of a compiled kernel do: "vectors", "gathers" or "one by one"."""
    several = innermost(assembly(kernel))
    packed = "\n".join(body for body in several if PACKED.search(body) and not CALL.search(body))
    return "gathers" if "gather" in packed else "vectors" if packed else "one by one"


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
