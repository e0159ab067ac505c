"""A small kernel in CUDA C; a small network, its images, and training on them by the reference."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from tests.networks import report_network

NET = report_network(height=14, width=13, filters=3, kernel=3, pool=2, classes=4)
N = 11


def kernel(body, before="", parameters="const float* a, float* out, int n"):
    """The source of a kernel k, whose body begins in line 4."""
    return f'{before}\nextern "C" __global__ void k({parameters})\n{{\n{body}\n}}\n'


def floats(n):
    return np.arange(n, dtype=np.float32)


def digits(seed=0):
    rng = np.random.default_rng(seed)
    images = rng.uniform(0, 1, (N, *NET.image_shape)).astype(np.float32)
    return images, rng.integers(0, NET.classes, N)


def trained(order, batch, rate, steps, net=NET, data=None):
    """The same steps, by the reference: the parameters, and the mean loss of the last batch."""
    images, labels = data or digits()
    params = net.parameters(seed=1, dtype=np.float64)
    grads = params.copy()
    for i in range(steps):
        chosen = order[i * batch : (i + 1) * batch]
        x = images[chosen].astype(np.float64)
        loss = loss_and_gradients(KERNELS["reference"], params, x, labels[chosen], grads)
        params.flat -= rate / batch * grads.flat
    return params.flat, loss / batch
