"""Verdicts: whether an answer is right, and in words which element is wrong and by how much."""

import html
import itertools
import math
import numbers
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: true if it passed, and the text to print."""

    passed: bool
    text: str
    largest_error: float = 0.0

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.text}"

    def report(self) -> bool:
        """Print it; return whether it passed.

        Raises AssertionError instead of returning False where the environment variable
        CNNLAB_STRICT is set, to anything but 0: a grader sees an exception, not a printed line.
        """
        if os.environ.get("CNNLAB_STRICT", "0") not in ("", "0"):
            self.require()
        else:
            print(self)
        return self.passed

    def require(self) -> None:
        """Print it, or raise AssertionError with its text if it failed."""
        if not self.passed:
            raise Wrong(str(self))
        print(self)


class Wrong(AssertionError):
    """What `require` raises; a notebook shows its words alone."""

    def _render_traceback_(self) -> list[str]:
        """The traceback, for IPython: it would say where the check is, not what is wrong."""
        return [str(self)]


def number_verdict(what: str, got, expected: float, rtol: float) -> Verdict:
    """The verdict on a number, which may differ by `rtol` × `expected`."""
    try:
        number = float(got)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        return Verdict(False, f"{what}: expected a number, got {got!r}")
    if np.isclose(number, expected, rtol=rtol, atol=0):
        return Verdict(True, f"{what}: {got}")
    side = "large" if number > expected else "small"
    return Verdict(False, f"{what}: {got} is too {side}")


def differences(name: str, got: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """The element that is most wrong, and how many are wrong, in words; empty if none is.

    Arrays of one shape; an element may differ by its `tolerance`. NaN is right only where expected.
    """
    if got.shape != expected.shape:
        return f"{name}: expected shape {expected.shape}, got {got.shape}"
    with np.errstate(invalid="ignore"):  # of infinity and NaN
        error = np.where(got == expected, 0, abs(got - expected))
        bad = ~(error <= tolerance) & ~(np.isnan(got) & np.isnan(expected))
    if not bad.any():
        return ""
    if np.isnan(got).all():
        return (
            f"{name} was never written, was added to without being set to zero first, "
            "or was computed from beyond the end of an input"
        )
    worst = np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1))
    index = tuple(int(i) for i in np.unravel_index(worst, bad.shape))
    text = f"{name}[{', '.join(map(str, index))}]: expected {expected[index]:.6g}, "
    if np.isnan(got[index]):
        text += "got NaN: it was not written, or was computed from NaN"
    else:
        text += f"got {got[index]:.6g}"
    with np.errstate(invalid="ignore"):
        why = hint(got, expected, tolerance)
    return f"{text}; {bad.sum()} of {bad.size} elements differ{why}"


def hint(got: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """The name of a common mistake, a constant factor or swapped axes, if the numbers show it."""
    ratio = got / np.where(expected == 0, np.nan, expected)
    factor = np.nanmedian(ratio) if np.isfinite(ratio).any() else np.nan
    if np.isfinite(factor) and abs(factor) > 1e-3 and abs(factor - 1) > 1e-3:
        plain = min(abs(factor - round(factor)), abs(1 / factor - round(1 / factor))) < 1e-3
        if (plain or got.size > 1) and np.all(
            abs(got - factor * expected) <= (1 + abs(factor)) * tolerance
        ):
            return f"; all are {factor:.4g} times the expected value"
    for axes in itertools.permutations(range(got.ndim)):
        if axes != tuple(range(got.ndim)) and expected.transpose(axes).shape == got.shape:
            if np.all(abs(got - expected.transpose(axes)) <= tolerance.transpose(axes)):
                return f"; right with its axes in the order {axes}"
    return ""


# --- predictions: a guess made before a measurement, told afterwards how far off it was -----------

CLOSE = 1.1  # a factor below which a guess was right, for most purposes


def predict(
    what: str, guess, measured, *, why: str = "", unit: str = "", among: Collection[str] = ()
) -> None:
    """Print a guess, what was measured and the factor between, then one line that says why.

    Numbers are in `unit`, and `measured` is whatever float() takes, such as a ratio of times. With
    words in `among`, both are one of these. Before there is a guess, ... and None get a polite
    line, below which a notebook folds the answer away; a guess of another type gets a line that
    says what is expected. Raises TypeError or ValueError where `measured` is no such thing.
    """
    measured = measured if among else float(measured)
    wanted = f"one of {', '.join(among)}" if among else "a positive number"
    if not fits(measured, among):
        raise ValueError(f"measured: expected {wanted}, got {measured!r}")
    if guess is ... or guess is None:
        print(f"{what}: not guessed yet. Put {wanted} in place of the dots, and run on from there.")
        if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
            answer = f"{said(measured, unit)}{f': {why}' if why else ''}"
            shell.display_pub.publish(folded(what, answer))
    elif not fits(guess, among):
        print(f"{what}: expected {wanted}, got {guess!r}")
    else:
        message = distance(guess, measured) if not among else "; right" * (guess == measured)
        print(f"{what}: you guessed {said(guess, unit)}, it is {said(measured, unit)}{message}")
        if why:
            print(f"Why: {why}")


def folded(question: str, answer: str) -> dict[str, str]:
    """An answer that is out of sight until it is asked for: for a notebook, by format."""
    head = f"<summary>{html.escape(question)}: the answer</summary>"
    return {
        "text/plain": f"{question}: the answer is folded away",
        "text/html": f"<details>{head}{html.escape(answer)}</details>",
    }


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
