"""Whether what is rounded by chance is right in the mean: told from many messages."""

from collections.abc import Callable

import numpy as np

from cnnlab.check.verdict import Verdict

# Standard errors that a mean may be off: of a million numbers that are right, not one is.
MOST = 6


def unbiased(name: str, found: np.ndarray, sent: np.ndarray, unit: np.ndarray | float) -> Verdict:
    """Whether what arrived, (M, n) of M messages, has the mean that was sent (n).

    `unit` is the distance between two levels: a number rounded to the one below or above it has at
    most the variance unit² / 4. Also wrong is a number that lands further off than a unit.
    """
    unit = np.broadcast_to(np.asarray(unit, np.float64), sent.shape)
    if not np.isfinite(found).all():
        return Verdict(False, f"{name}: expected finite numbers, {(~np.isfinite(found)).sum()} not")
    far = np.abs(found - sent).max(0)
    if (far > unit * (1 + 1e-5)).any():
        k = int(np.argmax(far / unit))
        text = f"{sent[k]:.4g} arrived {far[k]:.4g} off; its levels are {unit[k]:.4g} apart"
        return Verdict(False, f"{name}: {text}")
    off = np.abs(found.mean(0, dtype=np.float64) - sent) / (unit / 2 / len(found) ** 0.5)
    k = int(np.argmax(off))
    text = f"the mean of {len(found):,} messages is at most {off[k]:.1f} standard errors off"
    if off[k] < MOST:
        return Verdict(True, f"{name}: {text}")
    mean = found[:, k].mean(dtype=np.float64)
    return Verdict(False, f"{name}: of {sent[k]:.4g} arrives {mean:.4g} in the mean; {text}")


def tried(rounding: Callable, values: np.ndarray, n_messages: int, seed: int = 0) -> np.ndarray:
    """What `rounding(values, chances)` makes of the same values, with chances in [0, 1)."""
    rng = np.random.default_rng(seed)
    rows = [rounding(values.copy(), rng.random(values.shape)) for _ in range(n_messages)]
    return np.array(rows, np.float64)
