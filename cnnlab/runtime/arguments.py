"""Checks of arguments. Each raises ValueError in one form, `name: expected A, got B`."""

import argparse
import importlib
import math
import numbers
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np


def at_least(name: str, value: int, least: int) -> None:
    """Check that `value` is a whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")


def positive(name: str, value: float) -> None:
    """Check that `value` is a positive finite number."""
    if not isinstance(value, numbers.Real) or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a positive number, got {value!r}")


def not_negative(name: str, value: float) -> None:
    """Check that `value` is a finite number of at least 0."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")


def one_of(name: str, value: object, known: Collection[str]) -> None:
    """Check that `value` is one of the known names."""
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")


def parse_whole(text: str) -> int:
    """The whole number of at least 1 in an option's text; else argparse.ArgumentTypeError."""
    return _number(text, int, at_least, 1)


def parse_several(text: str) -> list[int]:
    """The whole numbers of at least 1 in an option's text, separated by commas; else as above."""
    return [parse_whole(number) for number in text.split(",")]


def parse_positive(text: str) -> float:
    """The positive finite number in an option's text; else argparse.ArgumentTypeError."""
    return _number(text, float, positive)


def _number(text: str, kind: type, check: Callable, *limits):
    """The number in a text, if it passes the check; argparse names the option in an error."""
    try:
        value = kind(text)
    except ValueError:
        value = text
    try:
        check("", value, *limits)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem).removeprefix(": ")) from None
    return value


class Parser(argparse.ArgumentParser):
    """A parser that answers a mistake with ValueError, in place of the end of the program."""

    def error(self, message: str):
        raise ValueError(message)


def table(rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Rows of cells as lines, each column as wide as its widest cell, with two spaces between.

    `align` has one letter for each column: "<" puts its cells left, ">" right. Default: all left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    columns = list(zip(align or "<" * len(widths), widths, strict=True))
    return "\n".join(
        "  ".join(f"{cell:{a}{n}}" for cell, (a, n) in zip(row, columns, strict=True)).rstrip()
        for row in rows
    )


# --- lists of what the course offers: a name, a line about it, and the place of its code ----------


class Entry(NamedTuple):
    """One entry of a list. Its code is imported by `load`, not before.

    `where` is "module:name", such as "cnnlab.training.method:Method".
    """

    name: str
    summary: str
    where: str

    def load(self):
        """The class or function that the entry names."""
        module, name = self.where.split(":")
        return getattr(importlib.import_module(module), name)


def listed(*entries: Entry) -> dict[str, Entry]:
    """The entries by name."""
    return {entry.name: entry for entry in entries}


def find(what: str, name: str, entries: dict[str, Entry]):
    """The class or function with that name, loaded; ValueError if `name` is not listed."""
    one_of(what, name, entries)
    return entries[name].load()
