"""Answers to the exercises of lesson 32, right and wrong."""

from cnnlab import check, cuda
from cnnlab.check.device import exercise

HEAD = """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""


def bias(answer):
    def launch(dz, db):
        db[...] = 0
        kernels = cuda.Kernels(HEAD + answer + "\n}\n")
        kernels.over("my_bias", dz.size, dz, db, *dz.shape[:2], dz[0, 0].size)

    return exercise("conv_backward_bias", launch)


def atomics(answer):
    return check.value("atomics", answer, 221_184)


def reads(answer):
    return check.value("elements of dz", answer, 150)


# The first thread of all does everything: slow, and no race.
ALONE = """
    if (i > 0) return;
    for (int j = 0; j < N * F * size; j++) db[j / size % F] += dz[j];
"""
RIGHT = [
    (bias, "if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);"),
    (bias, ALONE),
    (atomics, 64 * 6 * 24 * 24),
    (reads, 150),
]
WRONG = [
    (bias, "if (i < N * F * size) db[i / size % F] += dz[i];", "The numbers are right, but"),
    (bias, "atomicAdd(&db[i / size % F], dz[i]);", "out of bounds"),
    (bias, "if (i < N * F * size) atomicAdd(&db[i / size], dz[i]);", "out of bounds"),
    (bias, "if (i < N * F * size) atomicAdd(&db[i % F], dz[i]);", "db["),
    (bias, "if (i == 0) db[0] = 0; else if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);",
     "race"),
    (atomics, 3456, "too small"),
    (reads, 25, "too small"),
]  # fmt: skip
