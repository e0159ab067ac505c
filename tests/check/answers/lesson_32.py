"""Answers to the exercises of lesson 32, right and wrong."""

from cnnlab import cuda
from cnnlab.lessons.lesson_32 import atomic, atomics, reads, two_stages

HEAD = """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
# The first thread of all does everything: slow, and no race.
ALONE = """
    if (i > 0) return;
    for (int j = 0; j < N * F * size; j++) db[j / size % F] += dz[j];
"""


def lines(text):
    return cuda.Kernels(HEAD + text + "\n}\n")


def stages(old, new):
    text = two_stages.model().source
    assert old in text
    return cuda.Kernels(text.replace(old, new))


SUM = "for (int n = 0; n < N; n++) sum += parts[n * F + f];\n    db[f] = sum;"
ATOMICS = "db[f] = 0; for (int n = 0; n < N; n++) atomicAdd(&db[f], parts[n * F + f]);"
RIGHT = [
    (atomic, lines("if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);")),
    (atomic, lines(ALONE)),
    (atomics, 64 * 6 * 24 * 24),
    (reads, 150),
    (two_stages, stages("int n = 0; n < N; n++", "int n = N - 1; n >= 0; n--")),
]
WRONG = [
    (atomic, lines("if (i < N * F * size) db[i / size % F] += dz[i];"), "numbers are right, but"),
    (atomic, lines("atomicAdd(&db[i / size % F], dz[i]);"), "out of bounds"),
    (atomic, lines("if (i < N * F * size) atomicAdd(&db[i % F], dz[i]);"), "db["),
    (
        atomic,
        lines(
            "if (i == 0) db[0] = 0;"
            "else if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);"
        ),
        "race",
    ),
    (atomics, 3456, "too small"),
    (reads, 25, "too small"),
    (two_stages, stages("if (i >= N * F) return;", ""), "out of bounds"),
    (two_stages, stages("j < size", "j < size - 1"), "db["),
    (two_stages, stages("parts[n * F + f]", "parts[f * N + n]"), "db["),
    (two_stages, stages(SUM, ATOMICS), "an atomic is used"),
]  # fmt: skip
