"""The four ways to convolve, as a list: what lessons 50 and 51 compare and choose from."""

from collections.abc import Callable
from dataclasses import dataclass

from cnnlab.kernels.variants import fourier, im2col, winograd
from cnnlab.kernels.vector import conv


@dataclass(frozen=True)
class Way:
    """A way to convolve with stride 1: the contract's three operations, and what they need.

    `workspace(operation, N, C, F, H, W, K)` is in bytes, beside inputs and outputs.
    """

    name: str
    conv_forward: Callable
    conv_backward_weights: Callable
    conv_backward_input: Callable
    workspace: Callable[..., int]


def one_row(operation, N, C, F, H, W, K):
    """What `vector` needs beside inputs and outputs: a flat image of results."""
    return 4 * ((H - K) * W + W - K + 9)


WAYS = {
    way.name: way
    for way in (
        Way(
            "vector",
            conv.conv_forward,
            conv.conv_backward_weights,
            conv.conv_backward_input,
            one_row,
        ),
        Way(
            "im2col",
            im2col.conv_forward_im2col,
            im2col.conv_backward_weights_im2col,
            im2col.conv_backward_input_im2col,
            im2col.workspace,
        ),
        Way(
            "FFT",
            fourier.conv_forward_fft,
            fourier.conv_backward_weights_fft,
            fourier.conv_backward_input_fft,
            fourier.workspace,
        ),
        Way(
            "Winograd",
            winograd.conv_forward_winograd,
            winograd.conv_backward_weights_winograd,
            winograd.conv_backward_input_winograd,
            winograd.workspace,
        ),
    )
}
