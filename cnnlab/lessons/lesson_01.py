"""The exercises of lesson 01, its two steppers, and its drawings."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, operation
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import loops, reference
from cnnlab.measure import timing
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import GREY, INK, LAYERS, WRONG, as_rows, figure, measured, note

BLUE, ORANGE = LAYERS[1], LAYERS[4]  # what is read, what is written

FILTERS = {  # what a colleague's kernel does to its filter before it goes over the image
    "flips rows and columns": lambda w: w[::-1, ::-1],
    "flips the rows": np.flipud,
    "flips the columns": np.fliplr,
    "swaps rows and columns": np.transpose,
    "turns it by 90 degrees": np.rot90,
}


def passes(got) -> str:
    """Which of the colleague's kernels gets the right result with this filter, in words."""
    w = np.asarray(got() if callable(got) else got, float)
    if w.shape != (3, 3) or not np.isfinite(w).all():
        return f"expected 3 × 3 numbers, got {got!r}"
    return next((f"a kernel that {n} passes" for n, f in FILTERS.items() if (f(w) == w).all()), "")


@kinds.tested(
    passes,
    "Which changes of a filter leave yours as it is? Try w[::-1] and w.T.",
    "All nine weights may differ.",
)
def filter_that_tells():
    """No flip, swap or turn leaves it as it is; a symmetric one hides the fault of its symmetry."""
    return np.arange(9).reshape(3, 3)


def longest_chain(function: Callable, n: int = 16 * 67) -> float:
    """The share of n terms of db that are added one by one to the same sum; none in float64.

    Beside 2^24, float32 loses a one: all those that the same accumulator takes up afterwards.
    """
    lost = []
    for first in range(8):
        dz, db = np.ones((1, 1, 16, n // 16), np.float32), np.zeros(1, np.float32)
        dz.reshape(-1)[first] = 2**24
        function(dz, db)
        lost.append(n - 1 - first - int(db[0] - 2**24))
    return max(lost) / n


def cut(op: str, function: Callable) -> Verdict:
    """The verdict on a bias's gradient whose additions must not all wait for each other."""
    verdict = operation.kernel(op, function)
    if not verdict:
        return verdict
    if not 0.001 < (longest := longest_chain(function)) <= 1 / 3:
        chain = f"{longest:.0%} of the additions wait for each other: expected a third at most"
        return Verdict(False, chain if longest > 0.001 else "sums in float64: expected float32")
    dz, db = np.ones((64, 6, 24, 24), np.float32), np.empty(6, np.float32)
    calls = {"loops": lambda: loops.conv_backward_bias(dz, db), "yours": lambda: function(dz, db)}
    gain = timing.speedup(*timing.compare(calls, repeats=7).values())
    return Verdict(True, f"{verdict.text}; {gain.value:.2f} times as fast as one accumulator")


@kinds.kernel(
    "conv_backward_bias",
    "Four sums s0 to s3: the loop over q takes steps of four, and each sum gets one of the four.",
    "What if the number of columns is not a multiple of four? A remainder loop adds the rest.",
    by=cut,
)
@numba.njit
def bias_gradient(dz, db):
    """In rows of 24, four chains a quarter as long run side by side; the rest joins the first."""
    Q = dz.shape[3]
    for f in range(dz.shape[1]):
        s0 = s1 = s2 = s3 = np.float32(0)
        for n in range(dz.shape[0]):
            for p in range(dz.shape[2]):
                for q in range(0, Q - 3, 4):
                    s0 += dz[n, f, p, q]
                    s1 += dz[n, f, p, q + 1]
                    s2 += dz[n, f, p, q + 2]
                    s3 += dz[n, f, p, q + 3]
                for q in range(Q - Q % 4, Q):
                    s0 += dz[n, f, p, q]
        db[f] = (s0 + s1) + (s2 + s3)


suspects = {
    "weights": reference.conv_backward_weights,
    "bias": reference.conv_backward_bias,
    "input": lambda dz, w, dx: reference.conv_backward_input(dz[..., :-1], w, dx),
}


@kinds.number(
    "Move each number of x, w and b by h, as above, and compare with what the suspect writes.",
    "Where the two differ by more than rounding, they differ by much: count those.",
)
def wrong_numbers():
    """Only dx: the last column of dz is missing, which 4 columns of 7 rows in 2 images need."""
    return 2 * 7 * 4


@kinds.kernel(
    "conv_backward_input",
    "Tap (k, l) lies on pixel (i, j) if p · stride + k = i and q · stride + l = j: find p and q.",
    "divmod(i - k, stride) gives p and a rest. The output exists if the rest is 0 and 0 <= p < P; "
    "the same holds for q.",
)
def input_gradient(dz, w, dx, stride=1):
    """Each pixel is written once; the price is a test at every tap."""
    K, (P, Q) = w.shape[2], dz.shape[2:]
    for n, c, i, j in np.ndindex(dx.shape):
        total = 0.0
        for k, l in np.ndindex(K, K):
            p, rest_p = divmod(i - k, stride)
            q, rest_q = divmod(j - l, stride)
            if rest_p == rest_q == 0 and 0 <= p < P and 0 <= q < Q:
                total += dz[n, :, p, q] @ w[:, c, k, l]
        dx[n, c, i, j] = total


@measured
def term_times(times: Mapping[str, Mapping[str, float]], wait: float) -> Axes:
    """Draw the ns that a term of a sum takes: rows by name, with a bar for each call."""
    _, ax = plt.subplots(figsize=(8, 0.9 + 0.75 * len(times)))
    colors = dict(zip(next(iter(times.values())), LAYERS, strict=False))
    for y, bars in enumerate(times.values()):
        for k, (call, ns) in enumerate(bars.items()):
            at, color = y + 0.28 * (k - (len(bars) - 1) / 2), colors.get(call, "#cccccc")
            ax.barh(at, ns, 0.26, color=color, label=call if y in (0, len(times) - 1) else None)
            ink = "white" if color == LAYERS[0] else INK
            note(ax, f"{ns:.2f}", (0, at), (4, 0), va="center", fontsize=8.5, color=ink)
    ax.axvline(wait, color=INK, ls="--", lw=1.2)
    note(ax, f"an addition that waits: {wait:.2f} ns", (wait, -0.5), (0, 3), ha="center")
    ax.set(yticks=range(len(times)), yticklabels=list(times), xlabel="ns for each term of a sum")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return as_rows(ax, list(times))


@figure
def graphs(sums: Mapping[str, tuple]) -> Axes:
    """Draw sums, which are nested pairs, side by side: a dot for each operation, at its depth."""
    _, ax = plt.subplots(figsize=(8, 3.6))
    across = count()

    def place(node) -> tuple[float, int]:
        parts = [place(part) for part in node if isinstance(part, tuple)]
        parts += [(next(across), 0) for part in node if part == "b"]
        x = np.mean([x for x, _ in parts]) if parts else next(across)
        y = 1 + max((y for _, y in parts), default=0)
        for a, b in parts:
            ax.plot([a, x], [b, y], color=GREY, lw=0.8, zorder=1)
        ax.scatter(x, y, 16, color=ORANGE if parts else BLUE, zorder=2)
        return x, y

    for name, total in sums.items():
        x, y = place(total)
        note(ax, f"{name}: depth {y}", (x, y), (0, 6), ha="center")
        next(across)
    ax.set(xticks=[], ylabel="operations that follow one another")
    return ax


@figure
def reads(counts: np.ndarray) -> Axes:
    """Draw how often each pixel (H,W) is read."""
    _, ax = plt.subplots(figsize=(4.2, 3))
    ax.figure.colorbar(ax.imshow(counts, cmap="Purples", vmin=0), label="reads")
    ax.grid(visible=False)
    return ax


def sliding(x: np.ndarray, w: np.ndarray, z: np.ndarray, at: Sequence[tuple[int, int]]) -> Stepper:
    """Step a filter w (K,K) over an image x (H,W), results z (P,Q), through some positions."""
    (K, Q), frames, captions = (len(w), z.shape[1]), [], []
    for (p, q), (p_, q_) in zip(at, [(-K, -K), *at], strict=False):
        products, n = x[p : p + K, q : q + K] * w, p * Q + q + 1
        done = np.where(np.arange(z.size).reshape(z.shape) < n, z, np.nan)
        titles = f"x, window at {p}, {q}", "pixel × weight", f"z[{p}, {q}] = {z[p, q]:.2f}"
        axes, shown = frame((7.4, 2.8), 1, 3), (x, products, done)
        for ax, array, whole, title in zip(axes, shown, (x, w, z), titles, strict=True):
            most = 1.6 * abs(whole).max()  # dark ink stays readable
            levels = plt.get_cmap("gray_r", 4) if array is x else plt.get_cmap("PuOr", 7)
            ax.imshow(array, cmap=levels, vmin=0 if array is x else -most, vmax=most)
            ax.set(xticks=[], yticks=[], facecolor="#eeeeee", title=title)
        for (k, l), value in np.ndenumerate(products):
            look = {"ha": "center", "va": "center", "transform": axes[1].transData}
            text = f"{value:.1f}".replace("-0.0", "0.0")
            axes[1].figure.text(l, k, text, fontsize=9, **look)
        for ax, size, color in ((axes[0], K, WRONG), (axes[2], 1, INK)):
            ax.add_patch(plt.Rectangle((q - 0.5, p - 0.5), size, size, fill=False, ec=color, lw=2))
        shared = max(0, K - abs(p - p_)) * max(0, K - abs(q - q_))
        frames.append(axes[0].figure)
        counter = f"Results: {n}; multiply-adds: {n * K * K:,}."
        captions.append(f"{counter} Pixels shared with the frame before: {shared}.")
    return stepper(frames, title="A window slides over a digit", captions=captions)


def grids(ax: Axes, panels: Mapping[str, tuple[int, str, Mapping]]) -> None:
    """Draw panels by name, each of size × size cells; the cells given have a colour and a text."""
    left = 0.0
    for name, (size, color, texts) in panels.items():
        top = (5 - size) / 2
        for i, j in np.ndindex(size, size):
            fill, at = color if (i, j) in texts else "white", (left + j, top + i)
            ax.add_patch(plt.Rectangle(at, 1, 1, fc=fill, ec=GREY, lw=0.8))
            ax.text(at[0] + 0.5, at[1] + 0.5, texts.get((i, j), ""), ha="center", va="center")
        ax.text(left + size / 2, top - 0.3, name, ha="center", fontsize=12)
        left += size + 1.2
    ax.set(xlim=(-0.2, left - 1), ylim=(5.3, -1), aspect="equal")
    ax.axis("off")


def uses() -> Stepper:
    """Step through what a dz does in the gradients of a layer with 3 × 3 weights, 1 to 9."""
    taps = {(k, l): str(3 * k + l + 1) for k, l in np.ndindex(3, 3)}
    window = [{(1 + k, q + l): text for (k, l), text in taps.items()} for q in (0, 1)]
    both = {at: "+".join(c[at] for c in window if at in c) for at in window[0] | window[1]}
    flipped = {(2 - k, 2 - l): text for (k, l), text in taps.items()}
    one, two = {(1, 0): ""}, {(1, 1): ""}
    three = (window[0], one), (both, one | two), ({(2, 2): "Σ"}, flipped)
    shown = [
        {"x": (5, BLUE, c), "dw": (3, ORANGE, taps), "dz": (3, BLUE, dz)}
        for c, dz in zip(window, (one, two), strict=True)
    ] + [{"dx": (5, ORANGE, c), "w": (3, BLUE, taps), "dz": (3, BLUE, dz)} for c, dz in three]
    captions = (
        "Weights: dz[1, 0] times pixel 1 is added to dw 1, and so on: 9 additions.",
        "Weights: dz[1, 1] meets the pixels of its own window, and the same 9 sums: 18 additions.",
        "Input, as a scatter: dz[1, 0] times weight 1 is added to the first pixel: 9 additions.",
        "Input, as a scatter: dz[1, 1] adds to 6 of these pixels again: 18 additions to 12 pixels.",
        "Input, as a gather: one pixel sums 9 outputs, and meets the weights in reverse: 1 write.",
    )
    frames = [lambda ax, panels=panels: grids(ax, panels) for panels in shown]
    title = "One dz, its uses (blue is read, orange written; equal numbers meet)"
    return stepper(frames, title=title, captions=captions)
