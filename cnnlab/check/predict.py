"""Predictions: a guess made before a measurement, told afterwards how far off it was."""

import math
import numbers
from collections.abc import Collection

import numpy as np

CLOSE = 1.1  # a factor below which a guess was right, for most purposes


def predict(
    what: str, guess, measured, *, why: str = "", unit: str = "", among: Collection[str] = ()
) -> None:
    """Print a guess, what was measured and the factor between, then one line that says why.

    Numbers are in `unit`, and `measured` is whatever float() takes, such as a ratio of times. With
    words in `among`, both are one of these. Nothing is given away before there is a guess: ... and
    None get a polite line, a guess of another type one that says what is expected. Raises TypeError
    or ValueError where `measured` is no such number or word.
    """
    measured = measured if among else float(measured)
    wanted = f"one of {', '.join(among)}" if among else "a positive number"
    if not fits(measured, among):
        raise ValueError(f"measured: expected {wanted}, got {measured!r}")
    if guess is ... or guess is None:
        print(f"{what}: not guessed yet. Put {wanted} in place of the dots, and run on from there.")
    elif not fits(guess, among):
        print(f"{what}: expected {wanted}, got {guess!r}")
    else:
        told = distance(guess, measured) if not among else "; right" * (guess == measured)
        print(f"{what}: you guessed {said(guess, unit)}, it is {said(measured, unit)}{told}")
        if why:
            print(f"Why: {why}")


def fits(value, among: Collection[str]) -> bool:
    """Whether a value is one of the words, or where there are none, a positive finite number."""
    if among:
        return isinstance(value, str) and value in among
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and 0 < value < math.inf


def distance(guess: float, measured: float) -> str:
    """The factor between a guess and the truth, in words."""
    factor = max(guess / measured, measured / guess)
    if factor < CLOSE:
        return ": as good as right"
    return f": {said(factor)} times too {'high' if guess > measured else 'low'}"


def said(value, unit: str = "") -> str:
    """A number with three significant digits, never as 1e+03, and its unit; a word as it is."""
    if isinstance(value, str):
        return value
    digits = np.format_float_positional(value, 3, unique=False, fractional=False, trim="-")
    return f"{digits} {unit}".rstrip()
