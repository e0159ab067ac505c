"""PyTorch as a peer: the same network, batch size, learning rate and number of threads.

PyTorch is not a dependency: this module is imported only for `--against torch`.
"""

import numpy as np
import torch
from torch.nn import functional as nn

from cnnlab.kernels import BASE, KERNELS
from cnnlab.measure.bench import NETWORK, Contestant
from cnnlab.network import Network, layers


def peers(data, batch: int, n_threads: int, network: Network) -> dict[str, "TorchContestant"]:
    """PyTorch on the processor in two layouts; on a GPU, if any, eagerly and as a CUDA graph."""
    kinds = {"torch": TorchContestant, "torch, channels-last": ChannelsLast}
    if torch.cuda.is_available():
        kinds |= {"torch, GPU": TorchOnGpu, "torch, GPU graph": TorchGraph}
    return {name: kind(data, batch, n_threads, network) for name, kind in kinds.items()}


# Each kind of layer: its inputs (N, …), then weights and bias if it has them → its output (N, …).
FORWARD = {
    layers.Conv: lambda layer, x, w, b: nn.conv2d(x, w, b),
    layers.Pool: lambda layer, x, w, b: nn.conv2d(x, w, b, stride=layer.stride, groups=len(w)),
    layers.AveragePool: lambda layer, x: nn.avg_pool2d(x, layer.size, layer.stride),
    layers.MaxPool: lambda layer, x: nn.max_pool2d(x, layer.size, layer.stride),
    layers.Dense: lambda layer, x, w, b: nn.linear(x.flatten(1), w, b),
    layers.Sigmoid: lambda layer, x: torch.sigmoid(x),
    layers.ReLU: lambda layer, x: torch.relu(x),
    layers.Pad: lambda layer, x: nn.pad(x, 4 * (layer.width,)),
    layers.Concat: lambda layer, *x: torch.cat(x, 1),
    layers.Add: lambda layer, *x: sum(x),
}


class TorchContestant(Contestant):
    """The network in PyTorch's eager mode. Pooling is a convolution with one group for each map."""

    device, memory_format = "cpu", torch.contiguous_format

    def __init__(self, data, batch: int, n_threads: int, network=NETWORK):
        super().__init__(KERNELS[BASE], data, batch, network=network)
        self.n_threads = n_threads
        torch.set_num_threads(n_threads)
        self.x = torch.from_numpy(self.replica.images).to(self.device)
        self.y = torch.from_numpy(self.replica.labels).to(self.device)
        self.weights = [self.weight(torch.from_numpy(array)) for array in self.replica.params]
        rest = iter(self.weights)
        self.places = [  # but the last, each with its weights and bias
            (place, [next(rest) for _ in place.layer.parameter_shapes(place.input_shape)])
            for place in network.places[:-1]
        ]
        self.optimizer = torch.optim.SGD(self.weights, lr=network.usual_rate / batch)

    def weight(self, array: torch.Tensor) -> torch.Tensor:
        """A parameter of PyTorch's from one of ours: (C,K,K) of a pooling is (C,1,K,K) there."""
        array = array.unsqueeze(1) if array.ndim == 3 else array
        order = self.memory_format if array.ndim == 4 else torch.contiguous_format
        return array.to(self.device, memory_format=order, copy=True).requires_grad_()

    def loss(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Loss of a batch, summed over images and classes; the last sigmoid is a part of it."""
        outputs = [x]
        for place, weights in self.places:
            inputs = (outputs[i + 1] for i in place.sources)
            outputs.append(FORWARD[type(place.layer)](place.layer, *inputs, *weights))
        z = outputs[-1]
        onehot = nn.one_hot(labels, z.shape[1]).to(z.dtype)
        return nn.binary_cross_entropy_with_logits(z, onehot, reduction="sum")

    def steps(self) -> None:
        """Make the next `n_steps` training steps; the parameters stay PyTorch's."""
        for chosen in torch.from_numpy(self.next_batches()).to(self.device).split(self.batch):
            self.step(chosen)

    def train(self, order: np.ndarray) -> None:
        """Train on the images numbered in `order`, one batch; fetch the parameters."""
        self.step(torch.from_numpy(order).to(self.device))
        fetch(self.weights, self.replica.params)

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


class ChannelsLast(TorchContestant):
    """Filters in the order (F,K,K,C), in which PyTorch then also leaves what layers give."""

    memory_format = torch.channels_last


def fetch(tensors: list[torch.Tensor], arrays) -> None:
    """Copy tensors, wherever they are, to arrays of as many elements."""
    for array, tensor in zip(arrays, tensors, strict=True):
        array[:] = tensor.detach().cpu().numpy().reshape(array.shape)


class TorchOnGpu(TorchContestant):
    """Eager mode on a GPU, where the images lie; `steps()` makes an epoch, and waits at its end."""

    device = "cuda"

    def __init__(self, data, batch: int, n_threads: int, network=NETWORK):
        super().__init__(data, batch, n_threads, network)
        torch.backends.cudnn.allow_tf32 = False  # in float32, as the others
        self.n_steps = len(self.y) // batch

    @property
    def hardware(self) -> str:
        """The name of the GPU."""
        return f"GPU: {torch.cuda.get_device_name()}"

    def steps(self) -> None:
        """Make the next `n_steps` training steps, and wait for them."""
        super().steps()
        torch.cuda.synchronize()


class TorchGraph(TorchOnGpu):
    """A step on a GPU as a CUDA graph, replayed for each batch."""

    def __init__(self, data, batch: int, n_threads: int, network=NETWORK):
        super().__init__(data, batch, n_threads, network)
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
