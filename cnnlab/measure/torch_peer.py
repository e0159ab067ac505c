"""PyTorch as a peer: the same network, batch size, learning rate and number of threads.

PyTorch is not a dependency: this module is imported only for `--against torch`.
"""

import numpy as np
import torch
from torch.nn import functional

from cnnlab.kernels import BASE, KERNELS
from cnnlab.measure.bench import Contestant
from cnnlab.network import Network
from cnnlab.training import RATE


def peers(data, batch: int, n_threads: int) -> dict[str, "TorchContestant"]:
    """PyTorch on the processor and, where it has a GPU, on that: eagerly, and as a CUDA graph."""
    kinds = {"torch": TorchContestant}
    if torch.cuda.is_available():
        kinds |= {"torch, GPU": TorchOnGpu, "torch, GPU graph": TorchGraph}
    return {name: kind(data, batch, n_threads) for name, kind in kinds.items()}


class TorchContestant(Contestant):
    """The network in PyTorch's eager mode. Pooling is a convolution with one group for each map."""

    device = "cpu"

    def __init__(self, data, batch: int, n_threads: int):
        super().__init__(KERNELS[BASE], data, batch)
        self.n_threads = n_threads
        torch.set_num_threads(n_threads)
        self.x = torch.from_numpy(self.replica.images).to(self.device)
        self.y = torch.from_numpy(self.replica.labels).to(self.device)
        shapes = dict(Network().parameter_shapes)
        maps, rows, columns = shapes["pool_w"]
        shapes["pool_w"] = maps, 1, rows, columns
        self.weights = [
            torch.from_numpy(array).reshape(shapes[name]).to(self.device).requires_grad_()
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
        """Train on the images numbered in `order`, one batch; the parameters are the replica's."""
        self.step(torch.from_numpy(order))

    def step(self, chosen: torch.Tensor) -> None:
        """One step on the images numbered in `chosen`."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.x[chosen], self.y[chosen]).backward()
        self.optimizer.step()

    def gradients(self, x, labels):
        grads = self.replica.grads
        self.optimizer.zero_grad(set_to_none=True)
        given = (torch.from_numpy(array).to(self.device) for array in (x, labels))
        self.loss(*given).backward()
        fetch([weight.grad for weight in self.weights], grads)
        return grads


def fetch(tensors: list[torch.Tensor], arrays) -> None:
    """Copy tensors, wherever they are, to arrays of as many elements."""
    for array, tensor in zip(arrays, tensors, strict=True):
        array[:] = tensor.detach().cpu().numpy().reshape(array.shape)


class TorchOnGpu(TorchContestant):
    """Eager mode on a GPU, where the images lie; `steps()` makes an epoch, and waits at its end."""

    device = "cuda"

    def __init__(self, data, batch: int, n_threads: int):
        super().__init__(data, batch, n_threads)
        torch.backends.cudnn.allow_tf32 = False  # in float32, as the others
        self.n_steps = len(self.y) // batch

    @property
    def hardware(self) -> str:
        """The name of the GPU."""
        return f"GPU: {torch.cuda.get_device_name()}"

    def steps(self) -> None:
        """Make the next `n_steps` training steps; the parameters stay on the GPU."""
        for chosen in torch.from_numpy(self.next_batches()).to(self.device).split(self.batch):
            self.step(chosen)
        torch.cuda.synchronize()

    def train(self, order: np.ndarray) -> None:
        """Train on the images numbered in `order`, one batch; fetch the parameters."""
        self.step(torch.from_numpy(order).to(self.device))
        fetch(self.weights, self.replica.params)


class TorchGraph(TorchOnGpu):
    """A step on a GPU as a CUDA graph, replayed for each batch."""

    def __init__(self, data, batch: int, n_threads: int):
        super().__init__(data, batch, n_threads)
        self.chosen, self.graph = torch.arange(batch, device=self.device), torch.cuda.CUDAGraph()
        kept, side = [weight.detach().clone() for weight in self.weights], torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # a capture wants everything to have run before
            for _ in range(3):
                super().step(self.chosen)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            super().step(self.chosen)
        with torch.no_grad():
            for weight, value in zip(self.weights, kept, strict=True):
                weight.copy_(value)

    def step(self, chosen: torch.Tensor) -> None:
        self.chosen.copy_(chosen)
        self.graph.replay()
