"""The exercises of lesson 30."""

from cnnlab.check import kinds


@kinds.number(
    "A thread for each pixel: how many pixels are there, and how many threads has a block?",
    "64 · 28 · 28 pixels. Divide by 256, and round up.",
)
def blocks():
    """This time nothing is left over."""
    return 64 * 28 * 28 / 256


@kinds.number(
    "Which bytes does the warp touch, from the first to the last? A sector is moved whole.",
    "Thread 31 reads element 62. From element 0 to element 62 is nearly 256 bytes.",
)
def sectors():
    """Half of the 256 bytes that are moved nobody wants."""
    return 256 / 32


@kinds.cuda_c(
    "sigmoid_backward",
    lambda mine, y, dy, dz: mine.over("my_sigmoid_backward", y.size, y, dy, dz, y.size),
    "The trace names a line, a thread and an element. Has that thread an element at all?",
    "Threads come in whole blocks of 256. Let those from number size on do nothing.",
)
def guard():
    """The threads of the last block that have no element return at once, or skip the line."""
    return """
extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""


def _by_16(mine, x, dz, dw):
    (n, d), o = x.shape, dz.shape[1]
    grid = -(-d // 16), -(-o // 16)
    mine.launch("my_backward_weights", grid, (16, 16), x, dz, dw, n, d, o)


@kinds.cuda_c(
    "dense_backward_weights",
    _by_16,
    "Along x the blocks cover the D columns of dw, along y its O rows. Both may end inside one.",
    "d = blockIdx.x * 16 + threadIdx.x, o = blockIdx.y * 16 + threadIdx.y; and guard both.",
)
def two_indices():
    """Neighbours along x have neighbours in memory, since d is the last index of x and dw."""
    return """
extern "C" __global__ void my_backward_weights(const float* x, const float* dz, float* dw,
                                               int N, int D, int O)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int o = blockIdx.y * blockDim.y + threadIdx.y;
    if (d >= D || o >= O) return;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += x[n * D + d] * dz[n * O + o];
    dw[o * D + d] = sum;
}
"""
