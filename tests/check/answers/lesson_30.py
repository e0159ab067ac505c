"""Answers to the exercises of lesson 30, right and wrong."""

from cnnlab import check, cuda
from cnnlab.check.device import exercise

HEAD = """
extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""


def sigmoid_backward(answer):
    def launch(y, dy, dz):
        cuda.Kernels(HEAD + answer + "\n}\n").over("my_sigmoid_backward", y.size, y, dy, dz, y.size)

    return exercise("sigmoid_backward", launch)


def blocks(answer):
    return check.value("blocks", answer, 196)


def sectors(answer):
    return check.value("sectors", answer, 8)


RIGHT = [
    (sigmoid_backward, "if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);"),
    (sigmoid_backward, "if (i >= size) return; float s = y[i]; dz[i] = (s - s * s) * dy[i];"),
    (blocks, 196),
    (sectors, 8),
]
WRONG = [
    (sigmoid_backward, "", "never written"),
    (sigmoid_backward, "dz[i] = dy[i] * y[i] * (1.0f - y[i]);", "out of bounds, line 5"),
    (sigmoid_backward, "if (i < size - 1) dz[i] = dy[i] * y[i] * (1 - y[i]);", "was not written"),
    (sigmoid_backward, "if (i < size) dz[i] = dy[i] * (1.0f - y[i]);", "dz["),
    (
        sigmoid_backward,
        "if (threadIdx.x < size) dz[threadIdx.x] = dy[threadIdx.x] * y[threadIdx.x]\n"
        "    * (1.0f - y[threadIdx.x]);",
        "race, line 5",
    ),
    (blocks, 64 * 784, "too large"),
    (sectors, 4, "too small"),
    (sectors, 32, "too large"),
]
