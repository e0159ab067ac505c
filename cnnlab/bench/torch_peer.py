"""PyTorch as a peer: the same network, batch size, learning rate and number of threads.

PyTorch is not a dependency: this module is imported only for `--against torch`.
"""

import torch
from torch.nn import functional

from cnnlab.bench.contestants import Contestant
from cnnlab.kernels import BASE, KERNELS
from cnnlab.network import Network
from cnnlab.training import RATE


class TorchContestant(Contestant):
    """The network in PyTorch's eager mode. Pooling is a convolution with one group for each map."""

    def __init__(self, data, batch: int, n_threads: int):
        super().__init__(KERNELS[BASE], data, batch)
        self.n_threads = n_threads
        torch.set_num_threads(n_threads)
        self.x = torch.from_numpy(self.replica.images)
        self.y = torch.from_numpy(self.replica.labels)
        shapes = dict(Network().parameter_shapes)
        maps, rows, columns = shapes["pool_w"]
        shapes["pool_w"] = maps, 1, rows, columns
        self.weights = [
            torch.from_numpy(array).reshape(shapes[name]).requires_grad_()  # the same memory
            for name, array in zip(shapes, self.replica.params, strict=True)
        ]
        self.optimizer = torch.optim.SGD(self.weights, lr=RATE / batch)

    def loss(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Loss of a batch, summed over images and classes."""
        conv_w, conv_b, pool_w, pool_b, dense_w, dense_b = self.weights
        maps, _, stride, _ = pool_w.shape
        y = torch.sigmoid(functional.conv2d(x, conv_w, conv_b))
        y = functional.conv2d(y, pool_w, pool_b, stride=stride, groups=maps)
        z = functional.linear(torch.sigmoid(y).flatten(1), dense_w, dense_b)
        onehot = functional.one_hot(labels, z.shape[1]).to(z.dtype)
        return functional.binary_cross_entropy_with_logits(z, onehot, reduction="sum")

    def train(self, order) -> None:
        """Train on the images numbered in `order`, one batch."""
        chosen = torch.from_numpy(order)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.x[chosen], self.y[chosen]).backward()
        self.optimizer.step()

    def gradients(self, x, labels):
        """Gradients of a batch, summed over its images, as Parameters."""
        grads = self.replica.grads
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(torch.from_numpy(x), torch.from_numpy(labels)).backward()
        for array, weight in zip(grads, self.weights, strict=True):
            array[:] = weight.grad.numpy().reshape(array.shape)
        return grads
