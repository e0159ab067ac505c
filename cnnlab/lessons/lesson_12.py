"""The exercises of lesson 12."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numba
import numpy as np

from cnnlab.check import kinds, threads
from cnnlab.plots.style import COLORS, figure


@kinds.kernel(
    "conv_backward_input",
    "Collapse over n and c: what may an iteration write, and what does it only read?",
    "An iteration owns dx[n, c]: set it to zero, then scatter the products of all filters f into "
    "it. No other iteration touches it.",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def backward_input(dz, w, dx):
    """A scatter is safe inside the task that owns all it scatters to."""
    N, F, P, Q = dz.shape
    C, K = dx.shape[1], w.shape[2]
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        out = dx[n, c]
        out[:] = np.float32(0)
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    for k in range(K):
                        for l in range(K):
                            out[p + k, q + l] += w[f, c, k, l] * dz[n, f, p, q]


@kinds.formula(
    lambda rng: {"filters": int(rng.integers(1, 20)), "kernel": int(rng.integers(1, 9))},
    "How many windows of one map does a pixel in the middle lie in?",
    "In kernel × kernel windows of each map, and there is a map for each filter.",
)
def reads(filters, kernel):
    """It lies in kernel² windows of each map."""
    return filters * kernel * kernel


@kinds.formula(
    lambda rng: {"channels": int(rng.integers(1, 9)), "kernel": int(rng.integers(1, 9))},
    "The bias is stored first. What comes after it?",
    "One store for each weight that takes part: those of all channels.",
)
def stores(channels, kernel):
    """The bias, and then one for every tap of every channel."""
    return 1 + channels * kernel * kernel


# --- the order in which loops come to the elements of arrays --------------------------------------

LATEST = 3  # accesses that are outlined: a multiply-add's, or nearly
PAGE = """\
<div class="orders" style="max-width:60rem;font:1rem system-ui,sans-serif">
<canvas width="1200" height="HEIGHT" role="img" style="width:100%" aria-label="Arrays, a row for
 each order of the loops; the elements used last are outlined."></canvas>
<p style="margin:.3em 0;display:flex;gap:1em;align-items:center">
<button type="button" style="font:inherit">Play</button>
<input type="range" min="1" max="LAST" value="START" aria-label="access" style="flex:1"></p>
<p style="margin:0" aria-live="polite"></p>
</div>
<script>
(() => {
  const root = document.currentScript?.previousElementSibling
    ?? [...document.querySelectorAll(".orders")].pop();
  const { logs, shapes } = DATA, names = Object.keys(shapes);
  const [canvas, button, slider, line] = ["canvas", "button", "input", "p:last-child"]
    .map((name) => root.querySelector(name));
  const draw = canvas.getContext("2d");
  const show = () => {
    draw.clearRect(0, 0, 1200, canvas.height);
    Object.entries(logs).forEach(([kernel, log], row) => {
      const top = 40 + 270 * row, now = Math.min(+slider.value, log.length);
      Object.assign(draw, { fillStyle: "#222", font: "24px system-ui" });
      draw.fillText(kernel, 0, top + 20);
      draw.fillText(`access ${now}`, 0, top + 55);
      names.forEach((name, k) => {
        const [rows, columns] = shapes[name], left = 330 + 290 * k, size = 215 / 6;
        const counts = Array(rows * columns).fill(0);
        log.slice(0, now).forEach(([a, kind, at]) => { if (a === k) counts[at] += 1; });
        draw.fillStyle = "#222";
        draw.fillText(name, left, top - 8);
        counts.forEach((n, at) => {
          const [y, x] = [top + Math.floor(at / columns) * size, left + (at % columns) * size];
          draw.fillStyle = `rgb(${Array(3).fill(245 - Math.round(150 * (1 - Math.exp(-n / 6))))})`;
          draw.fillRect(x + 1, y + 1, size - 2, size - 2);
        });
        log.slice(Math.max(0, now - LATEST), now).forEach(([a, kind, at]) => {
          if (a !== k) return;
          const [y, x] = [top + Math.floor(at / columns) * size, left + (at % columns) * size];
          Object.assign(draw, { strokeStyle: kind ? "WRITTEN" : "READ", lineWidth: 5 });
          draw.strokeRect(x + 2, y + 2, size - 4, size - 4);
        });
      });
    });
    line.textContent = "outlined: the last; blue read, orange written; the darker, the more often";
  };
  let timer = 0;
  button.onclick = () => {
    clearInterval(timer);
    button.textContent = timer ? "Play" : "Pause";
    timer = timer ? 0 : setInterval(() => {
      slider.value = +slider.value < +slider.max ? +slider.value + 1 : 1;
      show();
    }, 120);
  };
  slider.oninput = show;
  show();
})();
</script>
"""


@dataclass(frozen=True)
class Player:
    """A page's picture of kernels that go through arrays, with a slider for the access."""

    logs: Mapping[str, Sequence]
    shapes: Mapping[str, tuple[int, int]]
    start: int

    def __repr__(self) -> str:
        return f"The accesses of {', '.join(self.logs)}; a slider steps through them on a page."

    def _repr_html_(self) -> str:
        """The picture, complete in itself."""
        known = list(self.shapes)
        logs = {
            kernel: [[known.index(a), int(kind == "write"), at] for a, kind, at in log]
            for kernel, log in kept(self.logs, known).items()
        }
        data = json.dumps({"logs": logs, "shapes": self.shapes}, separators=(",", ":"))
        numbers = {"HEIGHT": 30 + 270 * len(logs), "LAST": max(map(len, logs.values()))}
        numbers |= {"START": self.start, "LATEST": LATEST, "DATA": data}
        numbers |= {"WRITTEN": COLORS["device"], "READ": COLORS["vector"]}
        page = PAGE
        for name, value in numbers.items():
            page = page.replace(name, str(value))
        return page


def kept(logs: Mapping[str, Sequence], known: Sequence[str]) -> dict[str, list]:
    """The accesses to the arrays that are drawn."""
    return {kernel: [entry for entry in log if entry[0] in known] for kernel, log in logs.items()}


def stepper(
    logs: Mapping[str, Sequence], shapes: Mapping[str, tuple[int, int]], start: int = 1
) -> Player:
    """A slider over the accesses of kernels to arrays of these shapes (rows, columns), by name."""
    return Player(logs, {name: tuple(map(int, shape)) for name, shape in shapes.items()}, start)


@figure
def moments(
    logs: Mapping[str, Sequence], shapes: Mapping[str, tuple[int, int]], at: Sequence[int]
) -> np.ndarray:
    """Draw which elements kernels have come to after `at` accesses: a row each, the last outlined.

    Arguments as in `stepper`. The darker, the more often; blue was read, orange written.
    """
    shape = len(logs), len(at) * len(shapes)
    size = (1.6 * shape[1] + 0.6, 1.75 * shape[0] + 0.3)
    _, axes = plt.subplots(*shape, figsize=size, squeeze=False)
    for row, (kernel, log) in zip(axes, kept(logs, list(shapes)).items(), strict=True):
        for column, ax in enumerate(row):
            moment, name = at[column // len(shapes)], list(shapes)[column % len(shapes)]
            element_counts(ax, log[:moment], name, shapes[name])
            ax.set_title(f"{name}, access {moment}", fontsize=9)
        row[0].set_ylabel(kernel.replace(" ", "\n"), fontsize=9)
    return axes


def element_counts(ax, log: Sequence, name: str, shape: tuple[int, int]) -> None:
    """One array, after the accesses in `log`."""
    counts = np.zeros(shape)
    for array, _, place in log:
        if array == name:
            counts.flat[place] += 1
    ax.imshow(1 - np.exp(-counts / 6), cmap="Greys", vmin=0, vmax=1.6)
    for array, kind, place in log[-LATEST:]:
        if array == name:
            y, x = np.unravel_index(place, shape)
            look = {
                "edgecolor": COLORS["device" if kind == "write" else "vector"],
                "linewidth": 2.5,
            }
            ax.add_patch(plt.Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, fill=False, **look))
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)


# --- the kernels of this lesson ------------------------------------------------------------------


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_output_stationary(x, w, b, z):
    """Gather: an output stays; the inputs and weights that it needs stream past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    total = b[f]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                total += w[f, c, k, l] * x[n, c, p + k, q + l]
                    z[n, f, p, q] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_input_stationary(x, w, b, z):
    """Scatter: an input stays; its products go to all outputs that need it."""
    N, F, P, Q = z.shape
    _, C, H, W = x.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    pixel = x[n, c, i, j]
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                z[n, f, p, q] += w[f, c, i - p, j - q] * pixel


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_weight_stationary(x, w, b, z):
    """A weight stays; the whole image streams past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        weight = w[f, c, k, l]
                        for p in range(P):
                            out, row = z[n, f, p], x[n, c, p + k, l:]
                            for q in range(Q):
                                out[q] += weight * row[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_gather(dz, w, dx):
    """Gather: an element of dx stays; it adds a product from each output that used it."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    total = np.float32(0)
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                total += w[f, c, i - p, j - q] * dz[n, f, p, q]
                    dx[n, c, i, j] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_scatter(dz, w, dx):
    """Scatter: an element of dz stays; its products go to all inputs of its window."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    dx[n, c, i, j] = np.float32(0)
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dx[n, c, p + k, q + l] += w[f, c, k, l] * grad


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_weight_stationary(x, dz, dw):
    """Gather: an element of dw stays; it adds a product from each image and position."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for i in numba.prange(F * C * K * K):
        f, c, k, l = i // (C * K * K), i // (K * K) % C, i // K % K, i % K
        total = np.float32(0)
        for n in range(N):
            for p in range(P):
                row, grads = x[n, c, p + k, l:], dz[n, f, p]
                for q in range(Q):
                    total += row[q] * grads[q]
        dw[f, c, k, l] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_output_stationary(x, dz, dw):
    """Scatter: an element of dz stays; its products go to all weights of its filter."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for f in numba.prange(F):
        dw[f] = np.float32(0)
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dw[f, c, k, l] += x[n, c, p + k, q + l] * grad
