"""The vector registers that Numba compiles for, and how many vectors a kernel keeps in them."""

import operator
import re
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic, models, overload, register_model

WIDEST = 16  # float32 numbers in the widest register of any processor


class Registers(NamedTuple):
    """The usual name of the instructions (None: unknown), float32 in a register, and registers."""

    name: str | None
    lanes: int
    count: int


AVX512, AVX2, AVX = Registers("AVX-512", 16, 32), Registers("AVX2", 8, 16), Registers("AVX", 8, 16)
SSE2, NEON = Registers("SSE2", 4, 16), Registers("NEON", 4, 32)


def detected() -> Registers:
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


# --- vectors that a kernel can name ---------------------------------------------------------------

LANES = detected().lanes
PIXELS, MAPS, TAPS = budget(detected())
FLOAT, INT = ir.FloatType(), ir.IntType(32)
VECTOR, WHOLE = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
# As for the loop of `activation.sigmoid`: all but the freedom to add in another order, or to take
# NaN for impossible. Without infinity, LLVM makes one multiply-add of a (1 - a).
FLAGS = ("contract", "arcp", "ninf", "nsz")


class Block(types.Type):
    """The type of n vectors side by side."""

    def __init__(self, n: int):
        self.n = n
        super().__init__(name=f"Block({n})")


@register_model(Block)
class BlockModel(models.PrimitiveModel):
    """In LLVM's terms: [n x <LANES x float>]."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.ArrayType(VECTOR, kind.n))


@intrinsic(prefer_literal=True)
def block(typing, number, n):
    """n vectors (n is a literal), all of whose numbers are the float32 `number`."""
    kind = Block(n.literal_value)

    def code(context, builder, signature, arguments):
        return _joined(builder, _vectors(builder, arguments[0], types.float32, kind.n))

    return kind(types.float32, n), code


@intrinsic
def load(typing, array, i, like):
    """Vectors number i, i + 1, … of a float32 array, as many as the Block `like` has."""

    def code(context, builder, signature, arguments):
        places = _places(context, builder, array, *arguments[:2], like.n)
        return _joined(builder, [builder.load(place, align=4) for place in places])

    return like(array, types.intp, like), code


@intrinsic
def store(typing, array, i, value):
    """Write the vectors of a Block to a float32 array, as its vectors number i, i + 1, …"""

    def code(context, builder, signature, arguments):
        places = _places(context, builder, array, *arguments[:2], value.n)
        vectors = _vectors(builder, arguments[2], value, value.n)
        for place, vector in zip(places, vectors, strict=True):
            builder.store(vector, place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), code


@intrinsic
def totals(typing, value):
    """The sum of the numbers of each vector of a Block: a tuple of n float32."""

    def code(context, builder, signature, arguments):
        name, kind = f"llvm.vector.reduce.fadd.v{LANES}f32", ir.FunctionType(FLOAT, [FLOAT, VECTOR])
        add_up = cgutils.get_or_insert_function(builder.module, kind, name)
        zero = ir.Constant(FLOAT, 0.0)
        sums = [
            builder.call(add_up, [zero, vector], fastmath=["reassoc"])
            for vector in _vectors(builder, arguments[0], value, value.n)
        ]
        return context.make_tuple(builder, signature.return_type, sums)

    return types.UniTuple(types.float32, value.n)(value), code


@intrinsic
def shifted(typing, value, n):
    """A Block whose numbers, taken for 32-bit integers, are shifted left by n bits."""

    def code(context, builder, signature, arguments):
        bits = _everywhere(builder, builder.trunc(arguments[1], INT), WHOLE)
        return _joined(
            builder,
            [
                builder.bitcast(builder.shl(builder.bitcast(vector, WHOLE), bits), VECTOR)
                for vector in _vectors(builder, arguments[0], value, value.n)
            ],
        )

    return value(value, types.intp), code


def _elementwise(instruction):
    """An operation on two Blocks, or a Block and a float32, from one on two LLVM vectors."""

    @intrinsic
    def operation(typing, a, b):
        n = max(kind.n for kind in (a, b) if isinstance(kind, Block))
        kinds = [kind if isinstance(kind, Block) else types.float32 for kind in (a, b)]

        def code(context, builder, signature, arguments):
            both = [
                _vectors(builder, argument, kind, n)
                for argument, kind in zip(arguments, kinds, strict=True)
            ]
            return _joined(
                builder, [instruction(builder, x, y) for x, y in zip(*both, strict=True)]
            )

        return Block(n)(*kinds), code

    return operation


def _first_if(comparison):
    def choose(builder, x, y):
        return builder.select(builder.fcmp_ordered(comparison, x, y), x, y)

    return choose


smaller = _elementwise(_first_if("<"))  # these two return the second of two numbers, where one is
larger = _elementwise(_first_if(">"))  # NaN: one instruction on x86, `vminps`


def _operator(symbol, name):
    operation = _elementwise(lambda builder, x, y: getattr(builder, name)(x, y, flags=FLAGS))

    @overload(symbol)
    def typed(a, b):
        if isinstance(a, Block) or isinstance(b, Block):
            return lambda a, b: operation(a, b)


_operator(operator.add, "fadd")
_operator(operator.iadd, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def _vectors(builder, value, kind, n):
    """A Block, or a float32 in all places, as n LLVM vectors."""
    if isinstance(kind, Block):
        return [builder.extract_value(value, j) for j in range(kind.n)] * (n // kind.n)
    return [_everywhere(builder, value, VECTOR)] * n


def _everywhere(builder, value, kind):
    """An LLVM vector all of whose numbers are this one."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(WHOLE, [0] * LANES))


def _joined(builder, vectors):
    """LLVM vectors as the value of a Block."""
    value = ir.Constant(ir.ArrayType(VECTOR, len(vectors)), ir.Undefined)
    for j, vector in enumerate(vectors):
        value = builder.insert_value(value, vector, j)
    return value


def _places(context, builder, kind, array, i, n):
    """Pointers to vectors number i to i + n - 1 of an array."""
    first = builder.mul(i, context.get_constant(types.intp, LANES))
    start = builder.gep(context.make_array(kind)(context, builder, array).data, [first])
    start = builder.bitcast(start, VECTOR.as_pointer())
    return [builder.gep(start, [ir.Constant(INT, j)]) for j in range(n)]
