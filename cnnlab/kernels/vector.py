"""One core used well: Numba on one core, with loops that become vector instructions.

The operations of the contract are in `pixels`. Training goes further: in `steps` a vector is a
pixel of several images.
"""

from cnnlab.kernels.contract import ANY
from cnnlab.kernels.pixels import *  # noqa: F403
from cnnlab.kernels.steps import loss_and_gradients, sgd_steps  # noqa: F401

FUSES = ANY
