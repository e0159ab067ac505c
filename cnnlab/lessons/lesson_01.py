"""The exercises of lesson 01."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from cnnlab.check import kinds
from cnnlab.plots.style import INK, WRONG, figure


@kinds.number(
    "Each of 6 × 24 × 24 results takes 25 multiply-adds forward. And backward?",
    "The gradient of the weights takes as many as forward: every product there meets a dz. "
    "Twice 86,400 for an image, then.",
)
def multiply_adds():
    """At two operations each, and a peak in GFLOP/s, that bounds the time of an epoch."""
    return 60_000 * 2 * (6 * 24 * 24) * 25


@kinds.kernel(
    "conv_backward_bias",
    "One element of db for each filter f: over which of the indices n, f, p, q does it sum?",
    "For each f, add up dz[n, f, p, q] over all n, p and q; then store, rather than add to, db[f].",
)
def bias_gradient(dz, db):
    """Each pass of the loop writes one element, which no other pass touches."""
    for f in range(db.size):
        db[f] = dz[:, f].sum()


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


# --- a filter slides over an image ----------------------------------------------------------------

# Three panels on a canvas: the image with the window, the products, the results so far. It needs
# nothing but a browser; where scripts are not run, only the frames are there to be seen.
PAGE = """\
<div class="sliding" style="max-width:60rem;font:1rem system-ui,sans-serif">
<canvas width="1200" height="440" role="img" style="width:100%" aria-label="A window slides over the
 image; its pixels times the filter's weights add up to one result."></canvas>
<p style="margin:.3em 0;display:flex;gap:1em;align-items:center">
<button type="button" style="font:inherit">Play</button>
<input type="range" min="0" max="LAST" value="START" aria-label="position" style="flex:1"></p>
<p style="margin:0;min-height:1.5em" aria-live="polite"></p>
</div>
<script>
(() => {
  const root = document.currentScript?.previousElementSibling
    ?? [...document.querySelectorAll(".sliding")].pop();
  const { x, w, z } = DATA;
  const [canvas, button, slider, line] = ["canvas", "button", "input", "p:last-child"]
    .map((name) => root.querySelector(name));
  const draw = canvas.getContext("2d"), K = w.length, Q = z[0].length;
  const most = (rows) => Math.max(...rows.flat().map(Math.abs)) || 1;
  const [top_x, top_w, top_z] = [x, w, z].map(most);
  const mix = (t) => { // as in the plots: orange, white, purple for -1, 0, 1
    const far = t < 0 ? [179, 88, 6] : [84, 39, 136], s = Math.abs(t);
    return `rgb(${far.map((c) => Math.round(255 + s * (c - 255)))})`;
  };
  const grey = (t) => `rgb(${Array(3).fill(Math.round(255 * (1 - t)))})`;
  const tiles = (rows, left, size, color) => rows.forEach((row, i) => row.forEach((value, j) => {
    draw.fillStyle = color(value, i, j);
    draw.fillRect(left + j * size, 40 + i * size, size, size);
  }));
  const frame = (left, top, size, color) => {
    Object.assign(draw, { strokeStyle: color, lineWidth: 4 });
    draw.strokeRect(left, top, size, size);
  };
  const show = () => {
    const p = Math.floor(slider.value / Q), q = slider.value % Q;
    const a = 380 / x.length, b = 260 / K, c = 380 / z.length;
    draw.clearRect(0, 0, 1200, 440);
    Object.assign(draw, { font: "24px system-ui", textAlign: "start", fillStyle: "#222" });
    [["image x", 10], ["pixel × weight", 460], ["result z", 800]]
      .forEach(([text, left]) => draw.fillText(text, left, 28));
    tiles(x, 10, a, (v) => grey(v / top_x));
    frame(10 + q * a, 40 + p * a, K * a, "#d55e00");
    tiles(w, 460, b, (v, k, l) => mix((v * x[p + k][q + l]) / top_w));
    draw.textAlign = "center";
    draw.font = "17px system-ui";
    w.forEach((row, k) => row.forEach((v, l) => {
      const t = v * x[p + k][q + l];
      draw.fillStyle = Math.abs(t) > 0.6 * top_w ? "#fff" : "#222";
      draw.fillText(t.toFixed(2).replace("-0.00", "0.00"), 460 + (l + 0.5) * b, 46 + (k + 0.5) * b);
    }));
    frame(460, 40, 260, "#d55e00");
    const done = (i, j) => i * Q + j <= +slider.value;
    tiles(z, 800, c, (v, i, j) => (done(i, j) ? mix(v / top_z) : "#eee"));
    frame(800 + q * c, 40 + p * c, c, "#111");
    const sum = z[p][q].toFixed(2);
    line.textContent = `p = ${p}, q = ${q}: ${K * K} products and the bias make ${sum}`;
  };
  let timer = 0;
  button.onclick = () => {
    clearInterval(timer);
    button.textContent = timer ? "Play" : "Pause";
    timer = timer ? 0 : setInterval(() => {
      slider.value = +slider.value < +slider.max ? +slider.value + 1 : 0;
      show();
    }, 60);
  };
  slider.oninput = show;
  show();
})();
</script>
"""


@dataclass(frozen=True)
class Slider:
    """A page's picture of one filter on one image, with a slider for the position."""

    x: np.ndarray
    w: np.ndarray
    z: np.ndarray
    start: int

    def __repr__(self) -> str:
        P, Q = self.z.shape
        return f"A filter at each of {P} × {Q} positions; the slider shows where this is a page."

    def _repr_html_(self) -> str:
        """The picture, complete in itself."""
        names = {"x": self.x, "w": self.w, "z": self.z}
        data = json.dumps({k: np.round(a, 3).tolist() for k, a in names.items()})
        page = PAGE.replace("LAST", str(self.z.size - 1)).replace("START", str(self.start))
        return page.replace("DATA", data)


def slider(x: np.ndarray, w: np.ndarray, z: np.ndarray, start: tuple[int, int] = (0, 0)) -> Slider:
    """A slider over the positions (p, q) of a filter w (K,K) on an image x (H,W), results z (P,Q).

    Raises ValueError where z has not one result for each position.
    """
    fits = x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1
    if z.shape != fits:
        raise ValueError(f"z: expected shape {fits}, got {z.shape}")
    return Slider(x, w, z, int(np.ravel_multi_index(start, z.shape)))


@figure
def frames(x: np.ndarray, w: np.ndarray, z: np.ndarray, at: Sequence[tuple[int, int]]) -> plt.Axes:
    """Draw the image with the window, the products and the results so far, a row per position."""
    K, most = len(w), (np.abs(w).max(), np.abs(z).max())
    page, axes = plt.subplots(len(at), 3, figsize=(9, 2.9 * len(at)), squeeze=False)
    for row, (p, q) in zip(axes, at, strict=True):
        products = x[p : p + K, q : q + K] * w
        done = np.where(np.arange(z.size).reshape(z.shape) <= p * z.shape[1] + q, z, np.nan)
        row[0].imshow(x, cmap="gray_r")
        row[0].add_patch(plt.Rectangle((q - 0.5, p - 0.5), K, K, fill=False, ec=WRONG, lw=2.5))
        row[1].imshow(products, cmap="PuOr", vmin=-most[0], vmax=most[0])
        for (k, l), value in np.ndenumerate(products):
            ink = "white" if abs(value) > 0.6 * most[0] else INK
            text = f"{value:.2f}".replace("-0.00", "0.00")
            at_tap = {"transform": row[1].transData, "ha": "center", "va": "center"}
            page.text(l, k, text, color=ink, **at_tap)  # of the page: no part of the description
        row[2].imshow(done, cmap="PuOr", vmin=-most[1], vmax=most[1])
        row[2].add_patch(plt.Rectangle((q - 0.5, p - 0.5), 1, 1, fill=False, ec=INK, lw=2.5))
        titles = f"image x, window at p={p}, q={q}", "pixel × weight", f"result z = {z[p, q]:.2f}"
        for ax, title in zip(row, titles, strict=True):
            ax.set_title(title, fontsize=11)
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
    return axes[0, 0]
