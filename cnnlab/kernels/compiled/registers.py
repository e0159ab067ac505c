"""The vector registers that Numba compiles for, and how many vectors a kernel keeps in them."""

import re
from typing import NamedTuple

from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

WIDEST = 16  # float32 numbers in the widest register of any processor


class Registers(NamedTuple):
    """The usual name of the instructions (None: unknown), float32 in a register, and registers."""

    name: str | None
    lanes: int
    count: int


AVX512, AVX2, AVX = Registers("AVX-512", 16, 32), Registers("AVX2", 8, 16), Registers("AVX", 8, 16)
SSE2, NEON = Registers("SSE2", 4, 16), Registers("NEON", 4, 32)


def found() -> Registers:
    """The registers of the processor that Numba compiles for: this one, or that of NUMBA_CPU_NAME.

    Read from the assembly of a multiply-add of vectors, since no library tells for every processor.
    """
    code = assembly()
    if "zmm" in code:
        return AVX512
    if "ymm" in code:
        return AVX2 if "fmadd" in code else AVX
    if "xmm" in code:
        return SSE2
    return NEON if re.search(r"\.4s\b", code) else Registers(None, 4, 16)


@global_compiler_lock
def assembly() -> str:
    """What LLVM makes of a += a * b for vectors a and b."""
    vector = ir.VectorType(ir.FloatType(), WIDEST).as_pointer()
    library = cpu_target.target_context.codegen().create_library("registers")
    module = library.create_ir_module("registers")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [vector, vector]), "multiply_add")
    builder = ir.IRBuilder(function.append_basic_block())
    a, b = (builder.load(argument, align=4) for argument in function.args)
    product = builder.fmul(a, b, flags=["contract"])
    builder.store(builder.fadd(a, product, flags=["contract"]), function.args[0], align=4)
    builder.ret_void()
    library.add_ir_module(module)
    library.finalize()
    return library.get_asm_str()


class Budget(NamedTuple):
    """How many sums wait in registers: pixels of a map, or so many taps of so many maps."""

    pixels: int
    maps: int
    taps: int


# A multiply-add takes four or five cycles, and two begin in each: eight sums or more keep a core
# busy, sixteen on Apple's, which begins four. They must leave registers free for what is loaded: a
# weight and a pixel, or a number of each map and a pixel; and without fmadd, for a product. A row
# of five taps leaves none over, and 12 pixels, or 24, make whole rows of 24.
BUDGETS = {
    (16, 32): Budget(pixels=12, maps=3, taps=5),  # 12 and 15 sums in 32 registers
    (8, 16): Budget(pixels=12, maps=2, taps=5),  # 12 and 10 in 16
    (4, 16): Budget(pixels=12, maps=2, taps=5),  # 12 and 10 in 16
    (4, 32): Budget(pixels=24, maps=3, taps=5),  # 24 and 15 in 32
}


def budget(registers: Registers) -> Budget:
    """The budget for these registers."""
    return BUDGETS[registers.lanes, registers.count]
