"""Answers that are recognised and cannot be read: what students get in place of model answers.

Who hands out exercises seals what these compare with: see `cnnlab.course.assignment.stripped`. A
seal opens for a right answer alone. Nothing keeps a student from trying many, as with any check
that answers; the points come from whoever grades.
"""

import hashlib
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROUNDS = 2000  # of hashing: about a millisecond for a try


@dataclass(frozen=True, eq=False)
class Word:
    """A word that equals one text; `seal` is the digest of it."""

    salt: str
    seal: str

    def __eq__(self, other) -> bool:
        return isinstance(other, str) and digest(self.salt, other).hex() == self.seal

    __hash__ = None


@dataclass(frozen=True)
class Number:
    """A number, locked by the numbers that are right: within `rtol` times itself.

    `seal` has 8 bytes to know a right one by, and the number, hidden by 8 that follow from it.
    """

    salt: str
    rtol: float
    seal: str

    def opened(self, got: float) -> float | None:
        """The number, if `got` is as near as that; None for most that are not."""
        seal = bytes.fromhex(self.seal)
        for edge in (got / (1 + self.rtol), got / (1 - self.rtol)):
            key = digest(self.salt, interval(edge, self.rtol))
            if key[:8] == seal[:8]:
                return struct.unpack("<d", hidden(seal[8:], key))[0]
        return None


def word(salt: str, text: str) -> Word:
    """Seal a word."""
    return Word(salt, digest(salt, text).hex())


def number(salt: str, value: float, rtol: float) -> Number:
    """Seal a number, which answers may miss by `rtol` times itself."""
    key = digest(salt, interval(value, rtol))
    return Number(salt, rtol, (key[:8] + hidden(struct.pack("<d", value), key)).hex())


def digest(salt: str, text: str) -> bytes:
    """32 bytes from which nobody reads the text."""
    return hashlib.pbkdf2_hmac("sha256", text.encode(), salt.encode(), ROUNDS)


def hidden(value: bytes, key: bytes) -> bytes:
    """8 bytes hidden by a key, or shown again by the same one."""
    return bytes(a ^ b for a, b in zip(value, key[8:16], strict=True))


def interval(value: float, rtol: float) -> str:
    """Which of the intervals of three times the tolerance a number lies in, by sign and logarithm.

    What may be right for an answer is shorter than that: its edges meet all intervals of it.
    """
    if value == 0 or not math.isfinite(value):
        return str(float(value) + 0)
    return f"{math.copysign(1, value):g} {math.floor(math.log(abs(value)) / (3 * rtol))}"


class Table:
    """What a formula is tried on: rows of arguments by name, and the sealed number for each."""

    def __init__(self, rows: list[tuple[dict, Number]]):
        self.rows = rows

    def draw(self, rng: np.random.Generator) -> dict:
        """The arguments of a row."""
        return dict(self.rows[rng.integers(len(self.rows))][0])

    def of(self, given: dict) -> Number:
        """The number for the arguments of a row."""
        return next(number for arguments, number in self.rows if arguments == given)


# --- examples: calls of a function, as they were recorded ---------------------------------------


def examples(calls: list[tuple]) -> Callable[[Callable], str]:
    """A test: it calls an answer with recorded arguments, and says what came out otherwise.

    A call is (arguments, the same afterwards, what was returned), each as `written`. Where nothing
    was ever returned, an answer may return what it likes.
    """
    returns = any(returned is not None for *_, returned in calls)

    def test(answer) -> str:
        for number, call in enumerate(calls, start=1):
            given, after, returned = (read(part) for part in call)
            got = answer(*given)
            at = f"example {number} of {len(calls)}"
            if returns and not same(got, returned):
                return f"{at}: expected {short(returned)}, got {short(got)}"
            for k, (mine, right) in enumerate(zip(given, after, strict=True), start=1):
                if not callable(mine) and not same(mine, right):
                    return f"{at}: argument {k} should become {short(right)}, got {short(mine)}"
        return ""

    return test


def written(value):
    """A value as literals: arrays as their type and numbers, a function as calls of it."""
    if isinstance(value, Recorded):
        return {"calls": [(written(x), written(y)) for x, y in value.calls]}
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "values": value.tolist()}
    if isinstance(value, tuple | list | set):
        return type(value)(map(written, value))
    if isinstance(value, dict):
        return {"items": [(written(k), written(v)) for k, v in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"value: expected numbers, words, arrays, or these in lists, got {value!r}")


def read(value):
    """The value that was `written`, as a new object."""
    if isinstance(value, dict) and "calls" in value:
        return Recorded([(read(x), read(y)) for x, y in value["calls"]])
    if isinstance(value, dict) and "dtype" in value:
        return np.array(value["values"], value["dtype"])
    if isinstance(value, dict):
        return {read(k): read(v) for k, v in value["items"]}
    return type(value)(map(read, value)) if isinstance(value, tuple | list | set) else value


class Recorded:
    """A function of one argument, which knows its value in the places where it was called."""

    def __init__(self, calls: list[tuple], function: Callable | None = None):
        self.calls, self.function = calls, function

    def __call__(self, x):
        if self.function is not None:
            self.calls.append((np.copy(x), self.function(x)))
            return self.calls[-1][1]
        for place, value in self.calls:
            if same(x, place):
                return value
        raise ValueError(f"called at {short(x)}, where nobody needs it")


def same(got, expected) -> bool:
    """Whether two values agree, numbers up to rounding; pairs of places and values in any order."""
    if isinstance(expected, tuple | list):
        if not isinstance(got, tuple | list | np.ndarray) or len(got) != len(expected):
            return False
        return all(map(same, in_order(got), in_order(expected)))
    if isinstance(expected, np.ndarray | float):
        least = 1e-6 if getattr(expected, "dtype", None) == np.float32 else 1e-9
        got = np.asarray(got, float)
        return got.shape == np.shape(expected) and np.allclose(got, expected, 1e-5, least)
    return bool(got == expected)


def in_order(values) -> list:
    """Values that are whole numbers and as many others, in the order of the former; or as given."""
    arrays = [np.asarray(value) for value in values]
    pairs = len(arrays) == 2 and arrays[0].dtype.kind == "i" and arrays[0].ndim == 1
    if pairs and arrays[0].shape == arrays[1].shape:
        order = np.argsort(arrays[0])
        return [array[order] for array in arrays]
    return list(values)


def short(value) -> str:
    """A value in one line."""
    with np.printoptions(precision=4, threshold=8, edgeitems=3):
        return " ".join(str(value).split())
