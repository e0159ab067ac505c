"""Answers to the exercises of lesson 31, right and wrong."""

from cnnlab import check, cuda
from cnnlab.check.device import exercise

HEAD = """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    __shared__ float sums[64];
    int f = blockIdx.x;
"""
SHARE = """
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += blockDim.x)
        sum += dz[(i / size * F + f) * size + i % size];
    sums[threadIdx.x] = sum;
"""
TREE = """
    for (int half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) db[f] = sums[0];
"""


def bias(answer):
    def launch(dz, db):
        kernels = cuda.Kernels(HEAD + answer + "}\n")
        kernels.launch("my_bias", (len(db),), (64,), dz, db, *dz.shape[:2], dz[0, 0].size)

    return exercise("conv_backward_bias", launch)


def rounds(answer):
    return check.value("rounds", answer, 10)


def pixels(answer):
    return check.value("pixels for each result", answer, 1.5625)


# The threads come to the barrier as they please, but the first one adds for all: right, and safe.
SERIAL = """
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 64; i++) sums[0] += sums[i];
        db[f] = sums[0];
    }
"""
# Doubling upwards, so that the last thread has the sum.
UPWARDS = """
    for (int by = 1; by < 64; by *= 2) {
        float other = 0;
        __syncthreads();
        if (threadIdx.x >= by) other = sums[threadIdx.x - by];
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    if (threadIdx.x == 63) db[f] = sums[63];
"""
RIGHT = [
    (bias, SHARE + TREE),
    (bias, SHARE + SERIAL),
    (bias, SHARE + UPWARDS),
    (rounds, 10),
    (pixels, 400 / 256),
]
WRONG = [
    (bias, "", "never written"),
    (bias, SHARE + TREE.replace("__syncthreads();", ""), "race"),
    (bias, SHARE + SERIAL.replace("__syncthreads();", "__syncwarp();"), "race"),
    (bias, SHARE + UPWARDS.replace("__syncthreads();", "", 1), "race"),
    (bias, SHARE + TREE.replace("half = 32", "half = 64"), "out of bounds"),
    (bias, SHARE + TREE.replace("half = 32", "half = 16"), "db["),
    (bias, SHARE.replace("i < N * size", "i < N * size - 1") + TREE, "db["),
    (bias, SHARE.replace("float sum = 0", "float sum = sums[threadIdx.x]") + TREE, "uninitialised"),
    (
        bias,
        SHARE + TREE.replace("__syncthreads();", "if (threadIdx.x < half) __syncthreads();"),
        "waits at a barrier",
    ),
    (rounds, 1023, "too large"),
    (pixels, 1, "too small"),
]
