"""One core used well: Numba on one core, with loops that become vector instructions.

The operations of the contract are in `pixels`. Training goes further: in `steps` a vector is a
pixel of several images.
"""

from cnnlab.kernels.contract import ANY
from cnnlab.kernels.pixels import (
    conv_backward_bias,
    conv_backward_input,
    conv_backward_weights,
    conv_forward,
    cross_entropy,
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
    max_pool_backward,
    max_pool_forward,
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
)
from cnnlab.kernels.steps import loss_and_gradients, sgd_steps

FUSES = ANY

__all__ = [
    "FUSES",
    "conv_backward_bias",
    "conv_backward_input",
    "conv_backward_weights",
    "conv_forward",
    "cross_entropy",
    "dense_backward_bias",
    "dense_backward_input",
    "dense_backward_weights",
    "dense_forward",
    "loss_and_gradients",
    "max_pool_backward",
    "max_pool_forward",
    "pool_backward_bias",
    "pool_backward_input",
    "pool_backward_weights",
    "pool_forward",
    "relu",
    "relu_backward",
    "sgd_steps",
    "sigmoid",
    "sigmoid_backward",
]  # fmt: skip
