"""Answers to the exercises of lesson 21, right and wrong."""

from pathlib import Path

import nbformat

from cnnlab import check

LESSON = next((Path(__file__).parents[3] / "notebooks").glob("21_*.ipynb"))


def blocks(answer):
    """The lesson's own check."""
    for cell in nbformat.read(LESSON, as_version=4).cells:
        if "answers:blocks" in cell.metadata.get("tags", []):
            there = {"check": check, "my_block": lambda i, size, n: None}
            exec(cell.source.rpartition("\n\n\n")[0], there)
    return there["check_blocks"](answer)


def bugs(answer):
    number = answer if answer is ... else int("".join(map(str, answer)))
    return check.value("a, b, c", number, 231)


def factor(answer):
    return check.value("factor", answer, 2)


def the_first_get_one_more(i, size, n):
    each, more = divmod(n, size)
    first = i * each + min(i, more)
    return first, first + each + (i < more)


def rounded_down(i, size, n):
    return n * i // size, n * (i + 1) // size


def forgets_the_rest(i, size, n):
    return i * (n // size), (i + 1) * (n // size)


def all_the_rest_to_the_last(i, size, n):
    each = n // size
    return i * each, n if i == size - 1 else (i + 1) * each


def one_too_many(i, size, n):
    return n * i // size, n * (i + 1) // size + 1


RIGHT = [
    (blocks, the_first_get_one_more),
    (blocks, rounded_down),
    (bugs, (2, 3, 1)),
    (factor, 2),
]
WRONG = [
    (blocks, forgets_the_rest, "1 things on 2 ranks"),
    (blocks, all_the_rest_to_the_last, "things on"),
    (blocks, one_too_many, "things on 1 ranks"),
    (blocks, lambda i, size, n: None, "TypeError"),
    (bugs, (1, 2, 3), "too small"),
    (bugs, ..., "not yet answered"),
    (factor, 1, "too small"),
]
