"""The exercises of lesson 32."""

import numpy as np

from cnnlab.check import kinds

ATOMIC = 2


@kinds.number(
    "In how many windows of a map does the pixel lie?",
    "25 windows of each map, and there are six maps.",
)
def reads():
    """25 places of each of six maps. At the border of the image it is fewer."""
    return 6 * 5 * 5


def _atomic(mine, dz, db):
    db[...] = 0
    mine.over("my_bias", dz.size, dz, db, *dz.shape[:2], dz[0, 0].size)


@kinds.cuda_c(
    "conv_backward_bias",
    _atomic,
    "Two threads read the same sum, both add, both write: one addition is lost.",
    "atomicAdd(&place, value) does it in one piece.",
)
def atomic():
    """576 threads and more want the same element, one after the other: right, and slow."""
    return """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);
}
"""


@kinds.number(
    "How many elements has dz for one image, and how many atomics does a thread make?",
    "6 maps of 24 × 24, for each of 64 images; one atomic each.",
)
def atomics():
    """One for each element; after a tree it would be one a block that stays in its map."""
    return 64 * 6 * 24 * 24


def _in_two(mine, dz, db):
    (n, f), size = dz.shape[:2], dz[0, 0].size
    parts = np.full((n, f), np.nan, np.float32)
    mine.over("my_parts", n * f, dz, parts, n, f, size)
    mine.over("my_sum", f, parts, db, n, f)


def _no_atomics(traces: list) -> str:
    result = any((trace.flags & ATOMIC).any() for trace in traces)
    return "an atomic is used; two stages need none." if result else ""


@kinds.cuda_c(
    "conv_backward_bias",
    _in_two,
    "In the first launch, thread i has map i: `size` elements of image i / F, filter i % F.",
    "Map i begins at dz + i * size. In the second launch, thread f adds parts[n * F + f].",
    also=_no_atomics,
)
def two_stages():
    """The end of the first launch is the barrier that a grid otherwise lacks."""
    return """
extern "C" __global__ void my_parts(const float* dz, float* parts, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F) return;
    float sum = 0;
    for (int j = 0; j < size; j++) sum += dz[i * size + j];
    parts[i] = sum;
}
extern "C" __global__ void my_sum(const float* parts, float* db, int N, int F)
{
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= F) return;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += parts[n * F + f];
    db[f] = sum;
}
"""
