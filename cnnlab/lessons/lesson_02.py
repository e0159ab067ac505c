"""The exercises of lesson 02."""

from cnnlab.check.exercises import kinds


@kinds.number(
    "The first window begins at row 0. Where does the last one begin, if it must not hang over?",
    "It begins at row 24 − 4 = 20. How many even rows are there from 0 to 20?",
)
def rows_at_stride_2():
    """Windows then overlap, and the fully connected layer would need other weights."""
    return (24 - 4) // 2 + 1


@kinds.number(
    "How many numbers are in six maps of 24 × 24? And how many bytes is a float32?",
    "3,456 numbers, of 4 bytes each.",
)
def bytes_of_the_maps():
    """64 images make 64 times as much: compare that with your caches."""
    return 4 * 6 * 24 * 24


@kinds.kernel(
    "pool_backward_weights",
    "dw[c, k, l] multiplies each dz[n, c, p, q] by the one input that tap (k, l) saw there.",
    "For tap (k, l) those inputs are the slice x[:, :, k::stride, l::stride], cut to P rows and Q "
    "columns. Multiply by dz, and sum over images, rows and columns.",
)
def weights_gradient(x, dz, dw, stride=4):
    """The slice holds what one tap saw in every window: that is where the stride goes."""
    P, Q = dz.shape[2:]
    for k in range(dw.shape[1]):
        for l in range(dw.shape[2]):
            seen = x[:, :, k::stride, l::stride][:, :, :P, :Q]
            dw[:, k, l] = (dz * seen).sum(axis=(0, 2, 3))
