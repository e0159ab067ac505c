"""Answers to the exercises of lesson 30, right and wrong."""

from cnnlab import cuda
from cnnlab.lessons.lesson_30 import blocks, guard, sectors, two_indices

HEAD = """
extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
WEIGHTS = two_indices.model().source


def lines(text):
    return cuda.Kernels(HEAD + text + "\n}\n")


def weights(old, new):
    assert old in WEIGHTS
    return cuda.Kernels(WEIGHTS.replace(old, new))


RIGHT = [
    (guard, lines("if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);")),
    (guard, lines("if (i >= size) return; float s = y[i]; dz[i] = (s - s * s) * dy[i];")),
    (blocks, 196),
    (sectors, 8),
    (two_indices, weights("if (d >= D || o >= O) return;", "if (!(d < D && o < O)) return;")),
]
WRONG = [
    (guard, lines(""), "never written"),
    (guard, lines("dz[i] = dy[i] * y[i] * (1.0f - y[i]);"), "out of bounds, line 5"),
    (guard, lines("if (i < size - 1) dz[i] = dy[i] * y[i] * (1 - y[i]);"), "was not written"),
    (guard, lines("if (i < size) dz[i] = dy[i] * (1.0f - y[i]);"), "dz["),
    (
        guard,
        lines(
            "if (threadIdx.x < size) dz[threadIdx.x] = dy[threadIdx.x] * y[threadIdx.x]\n"
            "    * (1.0f - y[threadIdx.x]);"
        ),
        "race, line 5",
    ),
    (guard, "dz[i] = 1", "expected the kernels of %%cuda"),
    (blocks, 64 * 784, "too large"),
    (sectors, 32, "too large"),
    (two_indices, weights("d >= D || o >= O", "d >= D"), "out of bounds"),
    (two_indices, weights("blockIdx.y * blockDim.y + ", ""), "was not written"),
    (two_indices, weights("dw[o * D + d]", "dw[d * O + o]"), "dw["),
]
