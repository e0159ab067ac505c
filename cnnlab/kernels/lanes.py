"""One family of kernels, on arrays whose innermost index is B = LANES images: a pixel is a vector.

A convolution, a pooling, a fully connected layer and their gradients are all products of the same
kind: `rows` of sums (filters, outputs, maps) times `columns` of them (pixels, taps, vectors of a
row) wait in registers while the kernel walks over the terms of each. What differs is where the
terms lie, and that is in tables of offsets, made once for each layer: see `Tables`. So one loop
serves every size, stride and padding.
"""

import math

import numba
import numpy as np

from cnnlab.kernels.registers import (  # isort: skip
    BROAD_COLUMNS, BROAD_ROWS, COLUMNS, LANES, ROWS, TALL_COLUMNS, TALL_ROWS, WIDE_COLUMNS,
    WIDE_ROWS, block, gather, larger, load, only, outer, scatter, shifted, smaller, spread, store,
    summed, tile, transposed, where_at_most, where_equal, where_not_larger,
)  # fmt: skip

LINEAR, RELU, SIGMOID = range(3)  # what is done with a sum
FRESH, BIASED, ADDED = range(3)  # what a sum begins with: zero, a bias, or what was there
SINGLE, SQUARE, WIDE, BROAD, TALL = range(5)  # which sums wait: rows × columns
COLUMNS_OF = COLUMNS, COLUMNS, WIDE_COLUMNS, BROAD_COLUMNS, TALL_COLUMNS
PADDING = 16  # a table is as much longer, and repeats its last offset: a block may begin at any


def zeros(*shape):
    """Float32 zeros that begin at the start of a cache line, so that no vector straddles two."""
    size = math.prod(shape)
    buffer = np.zeros(size + 15, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return buffer[skip : skip + size].reshape(shape)


class Tables:
    """Offsets of float32 numbers in flat arrays, and records that name some of them.

    `flat` is what kernels read, a record is an index in it.
    """

    def __init__(self):
        self.parts, self.size = [], 0

    def add(self, offsets) -> int:
        """Keep some offsets; where they begin."""
        offsets = np.asarray(offsets, np.int64).reshape(-1)
        self.parts.append(np.concatenate([offsets, np.full(PADDING, offsets[-1])]))
        self.size += self.parts[-1].size
        return self.size - self.parts[-1].size

    def product(self, shape, w, x, z, runs=None, *, start=FRESH, activation=LINEAR, skip=0) -> int:
        """A record for `multiply`: w = (rows, terms), x = (columns, terms), z = (rows, columns).

        Each is a pair of arrays of offsets, from a row, column or term to its number in w, x or z.
        `shape` says how many sums wait in registers, and `start` what they begin with. Of
        activations, only RELU is applied. Lanes before `skip` add nothing. Where a column has no
        use for some terms, `runs` has the length of a run of terms, and for each column its first
        and last run, and the first and last term in these; columns that are done together do what
        one needs.
        """
        length, *bounds = runs or (len(w[1]), 0, 1, 0, len(w[1]))
        bounds = [np.broadcast_to(bound, len(x[0])) for bound in bounds]
        starts = np.arange(0, len(x[0]), COLUMNS_OF[shape])
        choose = np.minimum, np.maximum, np.minimum, np.maximum
        bounds = [pick.reduceat(bound, starts) for pick, bound in zip(choose, bounds, strict=True)]
        tables = [
            self.add(part) for part in (*w, *x, *z, np.arange(len(w[0])), np.stack(bounds, 1))
        ]
        return self.add([shape, start, activation, skip, len(w[0]), len(x[0]), *tables, length])

    def sums(self, shape, dz, x, dw) -> int:
        """A record for `add_products`: dz = (rows, terms), x = (columns, terms), and dw's."""
        tables = [self.add(part) for part in (*dz, *x, *dw)]
        return self.add([shape, len(dz[0]), len(x[0]), len(x[1]), *tables])

    @property
    def flat(self) -> np.ndarray:
        """All of them."""
        return np.concatenate(self.parts)


@numba.njit(error_model="numpy")
def products(sums, a, c, w, rows, wt, x, columns, xt, first, last, tables):
    """Add to a Block of sums the terms first, …, last - 1: a number of w times a vector of x."""
    for t in range(first, last):
        left = spread(w, tables, rows, wt + t, a)
        sums = outer(sums, left, gather(x, tables, xt + t, columns, c, c))
    return sums


@numba.njit(error_model="numpy")
def multiply(w, b, x, z, tables, record):
    """z = sums of w times x, for a record of `Tables.product`."""
    r = tables[record:]
    if r[0] == SQUARE:
        multiply_in(tile(ROWS, COLUMNS), w, b, x, z, tables, r)
    elif r[0] == WIDE:
        multiply_in(tile(WIDE_ROWS, WIDE_COLUMNS), w, b, x, z, tables, r)
    elif r[0] == BROAD:
        multiply_in(tile(BROAD_ROWS, BROAD_COLUMNS), w, b, x, z, tables, r)
    elif r[0] == TALL:
        multiply_in(tile(TALL_ROWS, TALL_COLUMNS), w, b, x, z, tables, r)
    else:
        multiply_in(tile(1, COLUMNS), w, b, x, z, tables, r)


@numba.njit(error_model="numpy", forceinline=True)
def multiply_in(tile, w, b, x, z, tables, r):
    """`multiply` with as many sums in registers as the tile has."""
    zero, a, c = tile
    start, activation, skip, n_rows, n_columns = r[1], r[2], r[3], r[4], r[5]
    ones = c + np.float32(1)
    for m in range(0, n_columns, len(c)):
        bounds = tables[r[13] + m // len(c) * 4 :]
        first, last = bounds[2], bounds[3]
        for i in range(0, n_rows, len(a)):
            sums = zero
            if start == BIASED:
                sums = outer(zero, spread(b, tables, r[12] + i, r[12], a), ones)
            rows, columns = r[6] + i, r[8] + m
            for run in range(bounds[0], bounds[1]):
                at = run * r[14]
                sums = products(
                    sums, a, c, w, rows, r[7] + at, x, columns, r[9] + at, first, last, tables
                )
            if skip > 0:
                sums = only(sums, skip, LANES)
            if start == ADDED:
                sums += gather(z, tables, r[10] + i, r[11] + m, zero, c)
            if activation == RELU:
                sums = where_at_most(sums, zero, zero, sums)
            scatter(z, tables, r[10] + i, r[11] + m, sums, c)


@numba.njit(error_model="numpy")
def add_products(dz, x, dw, tables, record):
    """Add to dw the sums over all terms of dz times x, for a record of `Tables.sums`."""
    r = tables[record:]
    if r[0] == SQUARE:
        add_products_in(tile(ROWS, COLUMNS), dz, x, dw, tables, r)
    elif r[0] == WIDE:
        add_products_in(tile(WIDE_ROWS, WIDE_COLUMNS), dz, x, dw, tables, r)
    else:
        add_products_in(tile(1, COLUMNS), dz, x, dw, tables, r)


@numba.njit(error_model="numpy", forceinline=True)
def add_products_in(tile, dz, x, dw, tables, r):
    """`add_products` with as many sums in registers as the tile has, and its dz in the L1 cache."""
    zero, a, c = tile
    for f in range(0, r[1], len(a)):
        for t in range(0, r[2], len(c)):
            at, rows, columns = r[8] + f, r[4] + f, r[6] + t
            sums = gather(dw, tables, at, r[9] + t, zero, c)
            for m in range(r[3]):
                left = gather(dz, tables, r[5] + m, rows, a, a)
                sums = outer(sums, left, gather(x, tables, r[7] + m, columns, c, c))
            scatter(dw, tables, at, r[9] + t, sums, c)


# --- elementwise ----------------------------------------------------------------------------------


@numba.njit(error_model="numpy")
def logistic(z):
    """1 / (1 + exp(-z)) for the numbers of a Block, with exp as in `vector.sigmoid`.

    exp(-r) is not cut from its series, but the polynomial 1 - r + c2 r^2 - … of degree 5 whose
    largest error for |r| <= ln 2 / 2 is least, 1.1e-7; the series takes degree 6 for that.
    """
    one, log2e, ln2 = np.float32(1), np.float32(1.44269504), np.float32(0.69314718)
    shift = np.float32(12583039)
    z = smaller(np.float32(87), larger(np.float32(-87), z))  # NaN stays NaN
    rounded = shift - z * log2e
    r = z + (rounded - shift) * ln2
    e = np.float32(0.04189016) - r * np.float32(0.00831251)
    e = np.float32(0.49999232) - r * (np.float32(0.16667115) - r * e)
    e = one - r * (one - r * e)
    return one / (one + e * shifted(rounded, 23))


@numba.njit(error_model="numpy")
def clear(x, n):
    """The first n vectors of x become zero."""
    for m in range(n):
        store(x, m, block(np.float32(0), 1))


@numba.njit(error_model="numpy")
def move(x, y, n, added, tables, places, origin):
    """Copy the first n vectors of x to the table `places` of y, or add them there."""
    one = block(np.float32(0), 1)
    for m in range(n):
        a = load(x, m, one)
        if added:
            a += gather(y, tables, origin, places + m, one, one)
        scatter(y, tables, origin, places + m, a, a)


@numba.njit(error_model="numpy")
def move_back(dy, dx, n, added, tables, places, origin):
    """The gradient of `move`: copy what lies at those places of dy to dx, or add it."""
    one = block(np.float32(0), 1)
    for m in range(n):
        a = gather(dy, tables, origin, places + m, one, one)
        store(dx, m, a + load(dx, m, one) if added else a)


@numba.njit(error_model="numpy")
def activate(y, n, activation):
    """The first n vectors of y become what the activation makes of them."""
    four, one = block(np.float32(0), 4), block(np.float32(0), 1)
    if activation == SIGMOID:
        for m in range(0, n - 3, 4):
            store(y, m, logistic(load(y, m, four)))
        for m in range(n - n % 4, n):
            store(y, m, logistic(load(y, m, one)))
    elif activation == RELU:
        for m in range(n):
            z = load(y, m, one)
            store(y, m, where_at_most(z, one, one, z))


@numba.njit(error_model="numpy")
def deactivated(y, dy, activation):
    """The gradient with respect to a sum, from that with respect to its activation y."""
    if activation == RELU:
        zero = only(dy, 0, 0)
        return where_at_most(y, zero, zero, dy)
    if activation == SIGMOID:
        return dy * (y * (np.float32(1) - y))
    return dy


@numba.njit(error_model="numpy")
def deactivate_in_place(y, dy, n, activation):
    """The first n vectors of dy become the gradients with respect to the sums."""
    one = block(np.float32(0), 1)
    for m in range(n):
        store(dy, m, deactivated(load(y, m, one), load(dy, m, one), activation))


@numba.njit(error_model="numpy")
def deactivate(y, dy, dz, db, activation, n_maps, n_pixels, maps, pixels, tables):
    """From gradients dy (maps × pixels) to those with respect to the sums; added up in db (maps,B).

    dz has them where the tables `maps` and `pixels` say. db may be empty.
    """
    one = block(np.float32(0), 1)
    for f in range(n_maps):
        total = one
        for m in range(n_pixels):
            at = f * n_pixels + m
            d = deactivated(load(y, at, one), load(dy, at, one), activation)
            scatter(dz, tables, maps + f, pixels + m, d, one)
            total += d
        if db.size:
            store(db, f, load(db, f, one) + total)


@numba.njit(error_model="numpy")
def add_dense_products(x, dz, dw, D, O):
    """The gradient of a fully connected layer of D < B inputs: x (D,B), dz (O,B) → dw (O,D)."""
    for o in range(O):
        for i in range(D):
            for n in range(LANES):
                dw[o * D + i] += dz[o * LANES + n] * x[i * LANES + n]


# --- pooling: one map, whose windows begin at the table `windows` of x and have `taps` ------------


@numba.njit(error_model="numpy")
def max_pool(x, z, n, n_taps, tables, maps, pixels, windows, taps):
    """The largest number of each of n windows: x (H,W,B) → z (n,B). NaN is larger than any."""
    four = block(np.float32(0), 4)
    for m in range(0, n, 4):
        best = gather(x, tables, taps, windows + m, four, four)
        for t in range(1, n_taps):
            a = gather(x, tables, taps + t, windows + m, four, four)
            best = where_not_larger(a, best, best, a)
        scatter(z, tables, maps, pixels + m, best, four)


@numba.njit(error_model="numpy")
def max_pool_backward(x, z, dz, dx, db, added, through, n, n_taps, tables, windows, taps):
    """The gradient of a window goes to its largest number, the first of equals: dz (n,B) → dx.

    x and dx (H,W,B), z (n,B). dx is `added` to or not. It is taken `through` the activation that
    made x (dx may then be x itself), and db (B), which may be empty, gets the sum.
    """
    zero = total = block(np.float32(0), 1)
    for m in range(n):
        best = load(z, m, zero)
        left = deactivated(best, load(dz, m, zero), through)
        total += left
        for t in range(n_taps):
            a = gather(x, tables, taps + t, windows + m, zero, zero)
            d = where_equal(a, best, left, zero)
            left = where_equal(a, best, zero, left)
            if added:
                d += gather(dx, tables, taps + t, windows + m, zero, zero)
            scatter(dx, tables, taps + t, windows + m, d, d)
    if db.size:
        store(db, 0, load(db, 0, zero) + total)


@numba.njit(error_model="numpy")
def pool_backward_input(x, w, dz, dx, db, added, through, n, n_taps, tables, windows, taps):
    """Trainable pooling: dz (n,B), w (taps) → dx, all as in `max_pool_backward`."""
    zero = total = block(np.float32(0), 1)
    for m in range(n):
        left = load(dz, m, zero)
        for t in range(n_taps):
            a = gather(x, tables, taps + t, windows + m, zero, zero)
            d = deactivated(a, w[t] * left, through)
            total += d
            if added:
                d += gather(dx, tables, taps + t, windows + m, zero, zero)
            scatter(dx, tables, taps + t, windows + m, d, d)
    if db.size:
        store(db, 0, load(db, 0, zero) + total)


@numba.njit(error_model="numpy")
def add_lanes(sums, grads):
    """Add to each gradient (M) the numbers of its vector: sums (M,B)."""
    one, whole = block(np.float32(0), 1), grads.size - grads.size % LANES
    for i in range(0, whole, LANES):
        a = transposed(load(sums, i, block(np.float32(0), LANES)))
        store(grads[i:], 0, load(grads[i:], 0, one) + summed(a))
    for i in range(whole, grads.size):
        for n in range(LANES):
            grads[i] += sums[i * LANES + n]


# --- in and out of the lanes ----------------------------------------------------------------------


@numba.njit(error_model="numpy")
def to_lanes(rows, places, n, x):
    """Lay LANES rows of n numbers side by side: that at rows[places[j] + i] → x[i, j] of x (n,B).

    `places` has room for one more number, see `gather`.
    """
    square = block(np.float32(0), LANES)
    for first in range(0, n - LANES + 1, LANES):
        places[LANES] = first
        a = gather(rows, places, LANES, 0, square, square)
        store(x, first, transposed(a))
    for i in range(n - n % LANES, n):
        for j in range(LANES):
            x[i * LANES + j] = rows[places[j] + i]


@numba.njit(error_model="numpy")
def to_rows(y, rows, tables, record):
    """Take rows out of their lanes: y (D,B) → rows (B,D).

    The record is that of `Tables.product` for the gradient of a fully connected layer's weights.
    """
    r = tables[record:]
    columns, places = r[8], r[9]
    for m in range(r[5]):
        a = transposed(load(y, tables[columns + m], block(np.float32(0), LANES)))
        one = block(np.float32(0), 1)
        scatter(rows, tables, places, columns + m, a, one)


@numba.njit(error_model="numpy")
def cross_entropy(y, n_classes, labels, n_images, factors, dz):
    """Loss of the first n_images lanes: y (O,B), labels (B) → dz (O,B) = y - onehot.

    Each lane multiplies some probabilities, in float64, before it takes a logarithm. In the other
    lanes dz is too small to count, but not zero: times an infinite weight, zero would be NaN.
    """
    one, least, little, loss = np.float32(1), np.float32(2**-24), np.float32(2**-60), 0.0
    for n in range(LANES):
        factors[n] = 1
    for o in range(n_classes):
        for n in range(LANES):
            a = y[o * LANES + n]
            hit = o == labels[n]
            p = a if hit else one - a
            d = a - one if hit else a
            dz[o * LANES + n] = d if n < n_images else d * little
            factors[n] *= least if p < least else p
        if o % 32 == 31 or o == n_classes - 1:
            for n in range(n_images):
                loss -= np.log(factors[n])
            for n in range(LANES):
                factors[n] = 1
    return loss
