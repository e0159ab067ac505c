"""The exercises of lesson 33."""

import numpy as np

from cnnlab import cuda, data
from cnnlab.check.exercises import kinds
from cnnlab.check.verdict import Verdict, differences


@kinds.number(
    "How long does each layer take in CUDA? Its seconds by its speedup.",
    "All seconds one after the other, by the sum of those.",
    rtol=2e-3,
)
def together():
    """The network, which consists of these layers, got 34."""
    seconds = data.report()["sequential"]["layer_seconds"].values()
    times = data.report()["cuda"]["layer_speedups"]
    return sum(seconds) / sum(s / t for s, t in zip(seconds, times, strict=True))


@kinds.number(
    "How many steps has an epoch, and what does the host need for one?",
    "60,000 / 250 steps of 19 launches of 5 µs.",
    rtol=5e-3,
)
def floor():
    """240 steps, 95 µs each."""
    return 60_000 / 250 * 19 * 5e-6


@kinds.number(
    "Now every image is a step.",
    "60,000 steps of 19 launches of 5 µs.",
    rtol=5e-3,
)
def image_by_image():
    """60,000 steps: 250 times as long."""
    return 60_000 * 19 * 5e-6


@kinds.number(
    "How many outputs has a window, how large is the patch that they see, how many weights?",
    "4 outputs of 25 multiply-adds each; 6 × 6 pixels and 25 weights are loaded.",
    rtol=5e-3,
)
def smaller_windows():
    """Less than half of the 4.49 with windows of 4 × 4: a larger window shares more."""
    return 2 * 2 * 5 * 5 / (6 * 6 + 5 * 5)


def _arrays(n: int = 2, f: int = 2, p: int = 2, q: int = 3, k: int = 2) -> list[np.ndarray]:
    """dz, w and y at random, and an output full of NaN."""
    rng = np.random.default_rng(0)
    shapes = (n, f, p, q), (f, k, k), (n, f, p * k, q * k)
    dz, w, y = (rng.uniform(0.02, 0.98, shape).astype(np.float32) for shape in shapes)
    return [dz, w, y, np.full_like(y, np.nan)]


def _both_at_once(operation: str, function) -> Verdict:
    """The verdict on a fused kernel: right numbers on several sizes, and no fault."""
    for sizes in ((), (1, 1, 1, 1, 1), (3, 6, 6, 6, 4), (5, 2, 9, 7, 3)):
        dz, w, y, out = _arrays(*sizes)
        k = w.shape[1]
        spread = np.repeat(np.repeat(dz, k, axis=2), k, axis=3)
        expected = spread * np.tile(w, (1, *dz.shape[2:])) * y * (1 - y)
        try:
            with cuda.traced() as traces:
                function(dz, w, y, out)
        except Exception as error:  # an answer may fail in any way: the verdict says how
            return Verdict(False, f"{operation}: raised {type(error).__name__}: {error}")
        faults = [fault for trace in traces for fault in trace.faults()]
        if faults:
            return Verdict(False, f"{operation}: {faults[0]}")
        if wrong := differences("out", out, expected, np.full_like(y, 1e-5)):
            return Verdict(False, f"{operation}: {wrong}")
    return Verdict(True, f"{operation}: right on four sizes, and no access is at fault")


def _launch(mine, dz, w, y, out):
    mine.over("my_backward", out.size, dz, w, y, out, out.size, *w.shape[:2], *y.shape[2:])


@kinds.cuda_c(
    "fused backward",
    _launch,
    "Take the thread's number apart into row, column, map and image. Which window is it in?",
    "Window (row / S, col / S), weight (row % S, col % S); then · y · (1 − y) in the same line.",
    arrays=_arrays,
    by=_both_at_once,
)
def fused():
    """The gradient between the two operations stays in a register: not written, and not read."""
    return """
extern "C" __global__ void my_backward(const float* dz, const float* w, const float* y, float* out,
                                       int size, int F, int S, int H, int W)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int col = i % W, row = i / W % H, f = i / (W * H) % F, n = i / (W * H * F);
    int P = H / S, Q = W / S;
    float dy = w[(f * S + row % S) * S + col % S]
               * dz[((n * F + f) * P + row / S) * Q + col / S];
    out[i] = dy * y[i] * (1.0f - y[i]);
}
"""
