"""Answers to the exercises of lesson 21, right and wrong."""

from cnnlab.lessons.lesson_21 import blocks, bugs, factor


def the_first_get_one_more(i, size, n):
    each, more = divmod(n, size)
    first = i * each + min(i, more)
    return first, first + each + (i < more)


def forgets_the_rest(i, size, n):
    return i * (n // size), (i + 1) * (n // size)


def all_the_rest_to_the_last(i, size, n):
    each = n // size
    return i * each, n if i == size - 1 else (i + 1) * each


def one_too_many(i, size, n):
    return n * i // size, n * (i + 1) // size + 1


RIGHT = [
    (blocks, the_first_get_one_more),
    (bugs, ["reduce", "division", "finalize"]),
    (factor, lambda before, after: after / before),
]
WRONG = [
    (blocks, forgets_the_rest, "1 things on 2 ranks"),
    (blocks, all_the_rest_to_the_last, "things on"),
    (blocks, lambda i, size, n: (n * i // size, n * (i + 1) // size), "1 things on 2 ranks"),
    (blocks, one_too_many, "things on 1 ranks"),
    (blocks, lambda i, size, n: size, "TypeError"),
    (bugs, ["finalize", "reduce", "division"], "finalize, reduce, division"),
    (bugs, (1, 2, 3), "expected 3 of"),
    (bugs, ..., "not yet answered"),
    (factor, lambda before, after: 1, "too small"),
]
