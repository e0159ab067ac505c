"""Values as JSON and bytes, and back. Nothing is unpickled: plain data and arrays are all there is.

Arrays go with all the memory that they lie in, so that guards around them are seen, and what the
other side has written comes back into that memory. Functions, and numbers that count, stay where
they are: the other side gets a number for each, and may call it.
"""

import math
import operator
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

MOST = 256 << 20  # bytes of a message
DTYPE = re.compile(r"[<>|=]?[biufc]\d{1,2}")
ARITHMETIC = {
    "__add__": operator.add,
    "__sub__": operator.sub,
    "__mul__": operator.mul,
    "__truediv__": operator.truediv,
    "__radd__": lambda a, b: b + a,
    "__rsub__": lambda a, b: b - a,
    "__rmul__": lambda a, b: b * a,
    "__neg__": lambda a: -a,
}


class Broken(Exception):
    """The other side has gone, or sent what is no message."""


class Memory:
    """The memory that the arrays of a message lie in, each piece of it once."""

    def __init__(self):
        self.roots: list[np.ndarray] = []
        self.given: list = []  # what has an array's values, if its own memory is not sent

    def place(self, array: np.ndarray) -> tuple[int, np.ndarray, int]:
        """The number of the memory that an array lies in, as it is sent, and the byte where."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not root.flags.c_contiguous or root.nbytes > 4 * array.nbytes + 4096:
            self.roots.append(np.ascontiguousarray(array).reshape(array.shape))
            self.given.append(array)
            return len(self.roots) - 1, self.roots[-1], 0
        offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        for number, other in enumerate(self.roots):
            if other is root:
                return number, array, offset
        self.roots.append(root)
        self.given.append(None)
        return len(self.roots) - 1, array, offset

    def bytes(self) -> list[bytes]:
        """What lies in it now."""
        return [root.tobytes() for root in self.roots]

    def restore(self, buffers: list) -> None:
        """Write back what the other side has made of it."""
        if len(buffers) < len(self.roots):
            raise Broken("arrays are missing")
        for root, given, buffer in zip(self.roots, self.given, buffers, strict=False):
            if len(buffer) != root.nbytes:
                raise Broken("an array has another size")
            if root.nbytes and (root if given is None else given).flags.writeable:
                root.reshape(-1).view(np.uint8)[:] = np.frombuffer(buffer, np.uint8)
                if given is not None:
                    given[...] = root


class Elsewhere:
    """Something of the other side: a function to call, or a number to compute with."""

    __array_ufunc__ = None  # NumPy's numbers leave the arithmetic to this one

    def __init__(self, peer, number: int):
        self._peer, self._number = peer, number

    def __call__(self, *arguments, **options):
        return self._peer.call("call", self._number, arguments, options)


def _forward(name: str):
    return lambda self, *others: self._peer.call(name, self._number, others, {})


class Remote(Elsewhere):
    """The same, with arithmetic."""

    locals().update({name: _forward(name) for name in ARITHMETIC})


class Values:
    """What turns values into JSON, and back; `own` has what the other side may call, by number.

    With `shares`, all that is no data gets a number: so does the grader's side, and it alone.
    """

    def __init__(self, own: dict[int, Any] | None = None, shares: bool = False):
        self.own, self.shares = own if own is not None else {}, shares

    def pack(self, value, memory: Memory):
        """A value as JSON, its arrays' bytes in `memory`. Raises TypeError for what is no data."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return ["number", value.dtype.str, value.tobytes().hex()]
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value)
        if value is ...:
            return ["open"]
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            number, array, offset = memory.place(value)
            return ["array", number, array.dtype.str, array.shape, array.strides, offset]
        if isinstance(value, np.ndarray):
            return self.pack(value.tolist(), memory)
        if isinstance(value, dict):
            return [
                "dict",
                [[self.pack(k, memory), self.pack(v, memory)] for k, v in value.items()],
            ]
        for name, kind in KINDS.items():
            if isinstance(value, kind):
                return [name, [self.pack(each, memory) for each in value]]
        if isinstance(value, Elsewhere):
            return ["yours", value._number]
        if self.shares:
            return self.shared(value)
        if isinstance(value, Iterable):
            return ["list", [self.pack(each, memory) for each in value]]
        raise TypeError(f"expected numbers, words, lists or arrays, got {type(value).__name__}")

    def shared(self, value):
        """The grader's own: chances as a seed, all else to be called."""
        if isinstance(value, np.random.Generator):
            return ["chance", int(value.integers(2**63))]
        number = len(self.own) + 1
        self.own[number] = value
        return ["mine", number, not callable(value)]

    def unpack(self, packed, buffers: list):
        """The value of JSON made by `pack`; raises Broken for any other."""
        if not isinstance(packed, list):
            return packed
        try:
            return self._unpack(packed, buffers)
        except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
            raise Broken(f"no value: {error}") from None

    def _unpack(self, packed: list, buffers: list):
        kind, *of = packed
        if kind == "number":
            return np.frombuffer(bytes.fromhex(of[1]), of_kind(of[0]))[0]
        if kind == "open":
            return ...
        if kind == "array":
            return array_of(buffers, *of)
        if kind == "dict":
            return {self.unpack(k, buffers): self.unpack(v, buffers) for k, v in of[0]}
        if kind in KINDS:
            return KINDS[kind](self.unpack(each, buffers) for each in of[0])
        if kind == "yours":
            return self.own[of[0]]
        if kind == "chance" and not self.shares:
            return np.random.default_rng(of[0])
        if kind == "mine" and not self.shares:
            return (Remote if of[1] else Elsewhere)(self, of[0])
        raise ValueError(kind)


KINDS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


def of_kind(text: str) -> np.dtype:
    """The type of numbers that a text names; ValueError for objects and the like."""
    if not isinstance(text, str) or not DTYPE.fullmatch(text):
        raise ValueError(f"dtype {text!r}")
    return np.dtype(text)


def array_of(buffers: list, number: int, dtype: str, shape: list, strides: list, offset: int):
    """An array in one of the buffers: what is written to it is written there."""
    if math.prod(shape) > MOST or min(shape, default=0) < 0 or len(shape) != len(strides):
        raise ValueError(f"shape {shape}")
    buffer = buffers[number]
    if math.prod(shape) == 0:
        return np.empty(shape, of_kind(dtype))
    return np.ndarray(shape, of_kind(dtype), buffer, offset, strides)


def refill(before, after) -> None:
    """Let a list, a dict or a set hold what the other side has made of its copy."""
    if isinstance(before, list) and isinstance(after, list):
        before[:] = after
    elif isinstance(before, dict | set) and type(before) is type(after):
        before.clear()
        before.update(after)
