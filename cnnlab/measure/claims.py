"""Claims: sentences that take their words from a measurement, and sentences held against one."""

import os

import numpy as np

from cnnlab.measure.timing import Timing, digits, speedup

STRICT = "CNNLAB_CLAIMS"  # the environment variable that `make render` sets


def compare(a: Timing, b: Timing, what: str = "A call") -> str:
    """Which of two timings of one `measure.compare` is faster and by how much, as a sentence.

    The intervals decide: where that of the ratio holds 1, the sentence says that this run shows no
    difference. "A step is 1.90 times faster with two threads than with one (1.80 to 2.00)."
    """
    fast, slow = (a, b) if speedup(b, a).value >= 1 else (b, a)
    ratio = speedup(slow, fast)
    interval = f"({digits(ratio.low)} to {digits(ratio.high)})"
    if ratio.low <= 1:
        return f"{what} shows no difference between {a.name} and {b.name} in this run {interval}."
    return (
        f"{what} is {digits(ratio.value)} times faster with {fast.name} than with {slow.name} "
        f"{interval}."
    )


def claim(sentence: str, held: bool) -> None:
    """Print a sentence that the text above or below relies on, and whether it holds here.

    Another machine may differ; the reader is told so. In `make render` that raises AssertionError,
    so that no page contradicts itself. TypeError if `held` is no bool.
    """
    if not isinstance(held, bool | np.bool_):
        raise TypeError(f"held: expected True or False, got {held!r}")
    if not held and os.environ.get(STRICT):
        raise AssertionError(f"claim: expected to hold, got the contrary: {sentence}")
    print(f"✓ {sentence}" if held else f"✗ Not on this machine: {sentence}")
