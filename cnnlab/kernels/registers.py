"""The vector registers that Numba compiles for, and how many vectors a kernel keeps in them."""

import functools
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
    """How many sums wait in registers, as rows × columns: filters × pixels, or maps × taps.

    `square` is the usual shape; `wide` and `broad` are for numbers of rows that it does not divide;
    `tall` has two columns, for the two vectors of images of a fully connected layer.
    """

    square: tuple[int, int]
    wide: tuple[int, int]
    broad: tuple[int, int]
    tall: tuple[int, int]


# A multiply-add takes four or five cycles, and two begin in each: eight sums or more keep a core
# busy, sixteen on Apple's, which begins four. They must leave registers free for what is loaded: a
# vector of each column, and a number of one row; and without fmadd, for a product. The nearer the
# shape is to a square, the fewer loads there are for each multiply-add. Five taps are a row.
BUDGETS = {
    (16, 32): Budget(square=(4, 4), wide=(3, 5), broad=(6, 4), tall=(6, 2)),
    (8, 16): Budget(square=(4, 3), wide=(2, 5), broad=(6, 2), tall=(6, 2)),
    (4, 16): Budget(square=(2, 5), wide=(2, 5), broad=(6, 2), tall=(6, 2)),
    (4, 32): Budget(square=(4, 4), wide=(3, 5), broad=(6, 4), tall=(8, 2)),
}


def budget(registers: Registers) -> Budget:
    """The budget for these registers."""
    return BUDGETS[registers.lanes, registers.count]


# --- vectors that a kernel can name ---------------------------------------------------------------

LANES = detected().lanes
TILES = budget(detected())
(ROWS, COLUMNS), (WIDE_ROWS, WIDE_COLUMNS), (BROAD_ROWS, BROAD_COLUMNS) = TILES[:3]
TALL_ROWS, TALL_COLUMNS = TILES.tall
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


@overload(len)
def _length(value):
    if isinstance(value, Block):
        n = value.n
        return lambda value: n


@intrinsic(prefer_literal=True)
def block(typing, number, n):
    """n vectors (n is a literal), all of whose numbers are the float32 `number`."""
    kind = Block(n.literal_value)

    def code(context, builder, signature, arguments):
        return _joined(builder, _vectors(builder, arguments[0], types.float32, kind.n))

    return kind(types.float32, n), code


@intrinsic(prefer_literal=True)
def tile(typing, rows, columns):
    """Blocks of zeros: of rows · columns vectors, of `rows` and of `columns`, both literals."""
    r, c = rows.literal_value, columns.literal_value
    kinds = types.Tuple([Block(r * c), Block(r), Block(c)])

    def code(context, builder, signature, arguments):
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        blocks = [_joined(builder, [zero] * n) for n in (r * c, r, c)]
        return context.make_tuple(builder, signature.return_type, blocks)

    return kinds(rows, columns), code


@intrinsic
def load(typing, array, i, like):
    """Vectors number i, i + 1, … of a float32 array, as many as the Block `like` has."""

    def code(context, builder, signature, arguments):
        return _read(builder, _places(context, builder, array, *arguments[:2], like.n))

    return like(array, types.intp, like), code


@intrinsic
def store(typing, array, i, value):
    """Write the vectors of a Block to a float32 array, as its vectors number i, i + 1, …"""

    def code(context, builder, signature, arguments):
        places = _places(context, builder, array, *arguments[:2], value.n)
        return _write(context, builder, arguments[2], value, places)

    return types.void(array, types.intp, value), code


@intrinsic
def gather(typing, array, table, rows, columns, like, row):
    """A Block `like` of vectors of a float32 array, in rows of as many vectors as Block `row` has.

    That in row r and column j begins at number table[rows + r] + table[columns + j] of the array.
    """

    def code(context, builder, signature, arguments):
        *given, _, _ = arguments
        return _read(builder, _grid(context, builder, signature, given, like.n, row.n))

    return like(array, table, types.intp, types.intp, like, row), code


@intrinsic
def scatter(typing, array, table, rows, columns, value, row):
    """Write the vectors of a Block to where `gather` finds them."""

    def code(context, builder, signature, arguments):
        *given, block, _ = arguments
        places = _grid(context, builder, signature, given, value.n, row.n)
        return _write(context, builder, block, value, places)

    return types.void(array, table, types.intp, types.intp, value, row), code


@intrinsic
def spread(typing, array, table, columns, row, like):
    """As `gather` of one row, but the number at each place fills its whole vector."""

    def code(context, builder, signature, arguments):
        *given, columns, row, _ = arguments
        places = _grid(context, builder, signature, [*given, row, columns], like.n, like.n)
        numbers = [builder.load(place, align=4) for place in places]
        return _joined(builder, [_everywhere(builder, number, VECTOR) for number in numbers])

    return like(array, table, types.intp, types.intp, like), code


@intrinsic
def outer(typing, sums, a, x):
    """Block `sums` (R·C) plus the products of all vectors of a (R) with all of x (C)."""

    def code(context, builder, signature, arguments):
        added, left, right = (
            _vectors(builder, argument, kind, kind.n)
            for argument, kind in zip(arguments, signature.args, strict=True)
        )
        products = [builder.fmul(one, other, flags=FLAGS) for one in left for other in right]
        return _joined(
            builder, [builder.fadd(s, p, flags=FLAGS) for s, p in zip(added, products, strict=True)]
        )

    return sums(sums, a, x), code


@intrinsic
def transposed(typing, value):
    """A Block of LANES vectors as a matrix, its rows and columns exchanged."""

    def code(context, builder, signature, arguments):
        vectors, half = _vectors(builder, arguments[0], value, LANES), LANES // 2
        low = [base + i for i in range(half) for base in (0, LANES)]
        masks = [
            ir.Constant(ir.VectorType(INT, LANES), [i + add for i in low]) for add in (0, half)
        ]
        for _ in range(half.bit_length()):
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
        return _joined(builder, vectors)

    return value(value), code


@intrinsic
def only(typing, value, first, last):
    """A Block with zero in all lanes but first, first + 1, …, last - 1."""

    def code(context, builder, signature, arguments):
        lanes = ir.Constant(WHOLE, list(range(LANES)))
        bounds = [_everywhere(builder, builder.trunc(bound, INT), WHOLE) for bound in arguments[1:]]
        kept = builder.and_(
            builder.icmp_signed(">=", lanes, bounds[0]), builder.icmp_signed("<", lanes, bounds[1])
        )
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        vectors = _vectors(builder, arguments[0], value, value.n)
        return _joined(builder, [builder.select(kept, vector, zero) for vector in vectors])

    return value(value, types.intp, types.intp), code


@intrinsic
def summed(typing, value):
    """The sum of the vectors of a Block: a Block of one."""

    def code(context, builder, signature, arguments):
        vectors = _vectors(builder, arguments[0], value, value.n)
        add = functools.partial(builder.fadd, flags=FLAGS)
        return _joined(builder, [functools.reduce(add, vectors)])

    return Block(1)(value), code


@intrinsic
def totals(typing, value):
    """The sum of the numbers of each vector of a Block: a tuple of n float32."""

    def code(context, builder, signature, arguments):
        kind = ir.FunctionType(FLOAT, [FLOAT, VECTOR])
        name = f"llvm.vector.reduce.fadd.v{LANES}f32"
        add, zero = cgutils.get_or_insert_function(builder.module, kind, name), FLOAT(0.0)
        vectors = _vectors(builder, arguments[0], value, value.n)
        sums = [builder.call(add, [zero, each], fastmath=("reassoc", "nsz")) for each in vectors]
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


def _choice(condition):
    """An intrinsic (a, b, x, y) of four Blocks: the numbers of x where a, b fulfil the condition.

    And those of y elsewhere.
    """

    @intrinsic
    def choose(typing, a, b, x, y):
        def code(context, builder, signature, arguments):
            columns = zip(
                *(_vectors(builder, argument, a, a.n) for argument in arguments), strict=True
            )
            return _joined(
                builder, [builder.select(condition(builder, p, q), r, s) for p, q, r, s in columns]
            )

        return a(a, a, a, a), code

    return choose


def _equal_or_nan(builder, a, b):
    equal, nan = builder.fcmp_ordered("==", a, b), builder.fcmp_unordered("uno", a, a)
    return builder.or_(equal, nan)


def _not_larger(builder, a, b):
    smaller, nan = builder.fcmp_ordered("<=", a, b), builder.fcmp_unordered("uno", b, b)
    return builder.or_(smaller, nan)


where_equal = _choice(_equal_or_nan)  # or a is NaN
where_not_larger = _choice(_not_larger)  # or b is NaN
where_at_most = _choice(lambda builder, a, b: builder.fcmp_ordered("<=", a, b))


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


def _read(builder, places):
    """The vectors at some pointers, as the value of a Block."""
    places = [builder.bitcast(place, VECTOR.as_pointer()) for place in places]
    return _joined(builder, [builder.load(place, align=4) for place in places])


def _write(context, builder, value, kind, places):
    """Write the vectors of a Block to some pointers."""
    for place, vector in zip(places, _vectors(builder, value, kind, kind.n), strict=True):
        builder.store(vector, builder.bitcast(place, VECTOR.as_pointer()), align=4)
    return context.get_dummy_value()


def _grid(context, builder, signature, arguments, n, n_columns):
    """Pointers to n numbers table[rows + r] + table[columns + j] of an array, by r and then j."""
    array, table = (
        context.make_array(kind)(context, builder, value).data
        for kind, value in zip(signature.args[:2], arguments[:2], strict=True)
    )
    places = []
    for start, size in zip(arguments[2:], (n // n_columns, n_columns), strict=True):
        first = builder.gep(table, [start])
        offsets = [builder.gep(first, [ir.Constant(ir.IntType(64), j)]) for j in range(size)]
        places.append([builder.load(offset) for offset in offsets])
    starts = [builder.gep(array, [row]) for row in places[0]]
    return [builder.gep(start, [column]) for start in starts for column in places[1]]


def _places(context, builder, kind, array, i, n):
    """Pointers to where vectors number i to i + n - 1 of an array begin."""
    first = builder.mul(i, context.get_constant(types.intp, LANES))
    start = builder.gep(context.make_array(kind)(context, builder, array).data, [first])
    return [builder.gep(start, [ir.Constant(INT, j * LANES)]) for j in range(n)]
