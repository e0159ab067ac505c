"""One core used well: Numba on one core, with loops that become vector instructions.

The contract's operations are in `pixels`; for training, in `steps`, a vector is one pixel of many.
"""

from cnnlab.kernels.contract import ANY
from cnnlab.kernels.pixels import *  # noqa: F403
from cnnlab.kernels.steps import loss_and_gradients, sgd_steps  # noqa: F401

FUSES = ANY
