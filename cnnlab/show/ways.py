"""Pictures of the ways to convolve: im2col's matrix, errors over tiles, and who wins where."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from cnnlab.bench.measure import Timing, digits, ratio
from cnnlab.bench.way_map import AXES, winner
from cnnlab.kernels.variants import im2col
from cnnlab.kernels.variants.four_ways import WAYS
from cnnlab.show.style import GREY, INK, OTHERS, colors, figure, measured, note


@figure
def unfolded(image: np.ndarray, kernel: int) -> np.ndarray:
    """Draw an image (H,W) of integers, and the matrix that im2col makes of it.

    A shade stands for a pixel, wherever it is copied to. The first window is framed, as is its
    column.
    """
    H, W = image.shape
    P, Q = H - kernel + 1, W - kernel + 1
    columns = np.empty((1, kernel, kernel, 1, P, Q), np.float32)
    im2col.unfold(image[None, None].astype(np.float32), columns)
    matrix = columns.reshape(kernel**2, P * Q)
    size = {"figsize": (9, 3.4), "width_ratios": (W, 1.6 * P * Q)}
    _, axes = plt.subplots(1, 2, **size)
    for ax, array in zip(axes, (image, matrix), strict=True):
        ax.imshow(array, cmap="cividis", alpha=0.55)
        for (i, j), value in np.ndenumerate(array):
            ax.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=INK)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    look = {"fill": False, "edgecolor": INK, "linewidth": 2.5, "clip_on": False}
    axes[0].add_patch(plt.Rectangle((-0.5, -0.5), kernel, kernel, **look))
    axes[1].add_patch(plt.Rectangle((-0.5, -0.5), 1, kernel**2, **look))
    axes[0].set_title(f"the image: {image.size} pixels", fontsize=10)
    axes[1].set_title(f"its matrix: {matrix.size} numbers", fontsize=10)
    axes[0].set(xlabel="column", ylabel="row")
    axes[1].set(xlabel=f"one column for each of {P} × {Q} results", ylabel="one row for each tap")
    return axes


@figure
def errors(found: Mapping[int, Mapping[int, float]]) -> Axes:
    """Draw Winograd's largest error over the tile, as a multiple of the direct sum's.

    `found[r][m]` is that of F(m², r²).
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    for (r, by_tile), color in zip(found.items(), OTHERS, strict=False):
        sizes = list(by_tile)
        ax.plot(sizes, list(by_tile.values()), "-o", color=color, label=f"kernels of {r} × {r}")
        last = (sizes[-1], by_tile[sizes[-1]])
        note(ax, f"{last[1]:,.0f}", last, (6, 0), va="center", fontsize=8)
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "direct", (min(map(min, found.values())), 1), (0, -11), color=GREY, fontsize=8)
    ax.set(xlabel="tile: m × m results", ylabel="times the direct sum's error", yscale="log")
    ax.set_ylim(0.4, None)
    ax.legend(frameon=False)
    return ax


@measured
def winners(
    panels: Mapping[str, Mapping[tuple[int, int], Mapping[str, Timing]]],
    axes: Mapping[str, Sequence] = AXES,
) -> np.ndarray:
    """Draw the fastest way for each layer, and how many times faster it is than `vector`.

    `panels` are those of `bench.way_map.sweep`. Pale is a lead that this run cannot tell from none.
    """
    _, drawn = plt.subplots(1, len(panels), figsize=(4.1 * len(panels), 4.2), squeeze=False)
    base, inks = next(iter(WAYS)), dict(zip(WAYS, colors(list(WAYS)), strict=True))
    for ax, (title, panel) in zip(drawn[0], panels.items(), strict=True):
        (down, rows), (across, columns) = (next(iter(side.items())) for side in axes[title])
        for (i, j), timings in panel.items():
            best, sure = winner(timings)
            y, x = rows.index(i), columns.index(j)
            look = {"color": inks[best], "alpha": 0.8 if sure else 0.3, "lw": 0}
            ax.add_patch(plt.Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, **look))
            gain = ratio(timings[base], timings[best]).value
            text = best if best == base else f"{best}\n{digits(gain)}×"
            ax.text(x, y, text, ha="center", va="center", fontsize=8, color=INK)
        ax.set_title(title, fontsize=10)
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5))
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), rows)
        ax.set(xlabel=LABELS[across], ylabel=LABELS[down])
        ax.grid(visible=False)
    patches = [Patch(color=ink, label=name) for name, ink in inks.items()]
    drawn[0, 0].figure.legend(handles=patches, ncols=4, loc="outside upper right", frameon=False)
    return drawn[0]


LABELS = {
    "C": "C, channels", "F": "F, filters", "CF": "C = F, channels and filters",
    "K": "K, kernel", "H": "H, image", "N": "N, batch",
}  # fmt: skip
