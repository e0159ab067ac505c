"""Checks of arguments. Each raises ValueError in one form, `name: expected A, got B`."""

import math
import numbers
from collections.abc import Collection

import numpy as np


def at_least(name: str, value: int, least: int) -> None:
    """Check that `value` is a whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")


def positive(name: str, value: float) -> None:
    """Check that `value` is a positive finite number."""
    if not isinstance(value, numbers.Real) or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a positive number, got {value!r}")


def one_of(name: str, value: object, known: Collection[str]) -> None:
    """Check that `value` is one of the known names."""
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
