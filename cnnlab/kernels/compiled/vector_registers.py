"""Vectors that a kernel can name, as C has them in `__m256`: the LANES float32 of one register.

Where LLVM makes the vectors of a loop, it decides what waits in registers and what goes to memory
and back. A kernel that wants to decide itself works with Blocks, each a few vectors side by side:

    s = block(b, 8)                  # eight vectors, all numbers b
    s += w * load(x, i, s)           # as many as s has, from x[LANES * i] on; x is C-contiguous
    store(z, i, s)

Arithmetic goes vector by vector through a Block, so neighbouring instructions do not wait for each
other. A Block of one vector goes with one of many, as a float32 does. Nothing checks the ends of
the arrays.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from cnnlab.kernels.compiled.registers import budget, found

LANES = found().lanes
PIXELS, MAPS, TAPS = budget(found())
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
