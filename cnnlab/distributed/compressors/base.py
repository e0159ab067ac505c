"""Numbers as they are, and the interface of all compressors; numbers of 16 bits."""

import numpy as np


class Compressor:
    """Messages that stand for n float32: here all their bytes. The base of every compressor.

    `encode` makes a message, uint8 (n_bytes); `decode` reads one. Where `feedback` is on, what a
    message does not say is kept in `residual`, and added to the next (Seide and others 2014).
    `state` has the arrays that a checkpoint keeps, by name; where chances come from the number of
    the message, `by_chance`, it keeps that, too. With `streams`, what `choose` returns is
    summed, and messages differ in length, see `StreamSum`.
    """

    feedback = by_chance = streams = False

    def __init__(self, n: int, seed: int = 0, argument: object = None):
        if argument is not None:
            raise ValueError(f"compress: expected no number of bits, got {argument}")
        self.n, self.seed, self.n_messages = n, seed, 0
        self.residual = np.zeros(n, np.float32) if self.feedback else None
        self.state = {"residual": self.residual} if self.feedback else {}

    @property
    def n_bytes(self) -> int:
        """The length of every message."""
        return 4 * self.n

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The message, uint8 (n_bytes), for float32 (n)."""
        self.n_messages += 1
        if self.residual is None:
            return self.pack(values)
        self.residual += values
        message, sent = self.pack(self.residual), np.empty_like(values)
        self.decode(message, sent)
        self.residual -= sent
        return message

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        return values.view(np.uint8).copy()

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n)."""
        values[:] = message.view(np.float32)

    def of_sum(self) -> "Compressor":
        """What the owner of a sum sends it with: the same, unless it sends sums otherwise."""
        return self


class Halves(Compressor):
    """Numbers of 16 bits: 11 bits of precision, and nothing above 65,504 but infinity."""

    @property
    def n_bytes(self) -> int:
        """The length of every message."""
        return 2 * self.n

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint8)

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n)."""
        values[:] = message.view(np.float16)
