"""How far a function in float32 is from the same in float64, in units in the last place."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.plots.style import GREY, colors, figure, note


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|got - exact|, in units in the last place: the distance from one float32 to the next there.

    The nearest float32 is at most 0.5 away.
    """
    return np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))


def sigmoid_errors(kernels: Mapping[str, Callable], z: np.ndarray) -> dict[str, np.ndarray]:
    """The errors of sigmoids `kernel(z, y)` at the numbers z, in units in the last place."""
    exact, found = 1 / (1 + np.exp(-z.astype(np.float64))), {}
    for name, kernel in kernels.items():
        y = np.full_like(z, np.nan)
        kernel(z, y)
        found[name] = ulps(y, exact)
    return found


@figure
def errors(z: np.ndarray, found: Mapping[str, np.ndarray]) -> Axes:
    """Draw errors in units in the last place over z, by name, and the line of rounding."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    for k, (name, color) in enumerate(zip(found, colors(list(found)), strict=True)):
        size = 2 * (len(found) - k)  # so that one can be seen under the next where they agree
        ax.plot(z, found[name], ".", color=color, ms=size, label=name)
    ax.axhline(0.5, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "the nearest", (z.max(), 0.5), (0, 3), ha="right", color=GREY)
    ax.set(xlabel="z", ylabel="error (units in the last place)", ylim=(0, None))
    ax.legend(frameon=False, markerscale=6)
    return ax
