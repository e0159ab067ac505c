"""Several cores: `numba.prange` is the parallel for, on as many threads as the pool is told.

Convolution and pooling are in `conv` and `pool`, the rest of the contract in `dense` and
`activation`. Training goes further, see `steps`.
"""

from cnnlab.kernels.threads.activation import (  # fmt: skip
    cross_entropy,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
)
from cnnlab.kernels.threads.conv import (  # fmt: skip
    conv_backward_bias,
    conv_backward_input,
    conv_backward_weights,
    conv_forward,
)
from cnnlab.kernels.threads.dense import (  # fmt: skip
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
)
from cnnlab.kernels.threads.pool import (  # fmt: skip
    max_pool_backward,
    max_pool_forward,
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
)
from cnnlab.kernels.threads.steps import loss_and_gradients, sgd_steps
from cnnlab.network import REPORT_FORM

FUSES = REPORT_FORM

__all__ = [
    "FUSES",
    "conv_backward_bias", "conv_backward_input", "conv_backward_weights", "conv_forward",
    "cross_entropy", "dense_backward_bias", "dense_backward_input", "dense_backward_weights",
    "dense_forward", "loss_and_gradients", "max_pool_backward", "max_pool_forward",
    "pool_backward_bias", "pool_backward_input", "pool_backward_weights", "pool_forward", "relu",
    "relu_backward", "sgd_steps", "sigmoid", "sigmoid_backward",
]  # fmt: skip
