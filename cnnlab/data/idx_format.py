"""The IDX format, in which MNIST is published: a header, then the values in C order."""

import math

import numpy as np


class DataError(RuntimeError):
    """A file of a dataset is damaged or cannot be found. The message says which, and why."""


def parse(raw: bytes, rank: int, where: str) -> np.ndarray:
    """The uint8 array of `rank` dimensions in an IDX file.

    The header is two zero bytes, 8 (for uint8), the rank, and each dimension as a big-endian
    uint32. Raises DataError, naming the file as `where`, for any other header, or if the values are
    not as many as it promises.
    """
    start = 4 + 4 * rank
    expected = bytes([0, 0, 8, rank])
    if raw[:4] != expected or len(raw) < start:
        raise DataError(
            f"{where}: expected an IDX header of {start} bytes that begins {expected.hex(' ')}, "
            f"got {min(len(raw), start)} bytes that begin {raw[:4].hex(' ')}"
        )
    shape = np.frombuffer(raw, ">u4", count=rank, offset=4).tolist()
    if len(raw) - start != math.prod(shape):
        promised = f"{' x '.join(map(str, shape))} = {math.prod(shape)}"
        raise DataError(f"{where}: expected {promised} values, got {len(raw) - start}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
