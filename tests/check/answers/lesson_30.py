"""Answers to the exercises of lesson 30, right and wrong."""

from cnnlab import cuda
from cnnlab.lessons.lesson_30 import access, grid_stride, guard, two_indices

HEAD = """
extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
WEIGHTS = two_indices.model().source


def lines(text):
    return cuda.Kernels(HEAD + text + "\n}\n")


def strided(begin, condition, step):
    loop = f"for (int i = {begin}; {condition}; i += {step}) dz[i] = dy[i] * y[i] * (1 - y[i]);"
    head = HEAD.replace("sigmoid_backward", "strided").partition("    int i")[0]
    return cuda.Kernels(head + loop + "\n}\n")


I = "blockIdx.x * blockDim.x + threadIdx.x"


def weights(old, new):
    assert old in WEIGHTS
    return cuda.Kernels(WEIGHTS.replace(old, new))


RIGHT = [
    (guard, lines("if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);")),
    (guard, lines("if (i >= size) return; float s = y[i]; dz[i] = (s - s * s) * dy[i];")),
    (grid_stride, strided(I, "i < size", "256")),
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
    (grid_stride, strided(I, "i < size", "size"), "was not written"),  # a guard, no loop
    (grid_stride, strided(I, "i <= size", "256"), "out of bounds"),
    (grid_stride, strided(I, "i < size", "blockDim.x"), "race"),
    (grid_stride, strided("threadIdx.x", "i < size", "blockDim.x"), "race"),
    (grid_stride, strided(I, "i < size - 255", "256"), "never written"),
    (access, "x[lane + 1]", "x[lane + 1]"),
    (access, "x[lane / 2]", "x[lane / 2]"),
    (two_indices, weights("d >= D || o >= O", "d >= D"), "out of bounds"),
    (two_indices, weights("blockIdx.y * blockDim.y + ", ""), "was not written"),
    (two_indices, weights("dw[o * D + d]", "dw[d * O + o]"), "dw["),
]
