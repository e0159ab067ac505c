"""The layers: from the shape of an input follow those of output and parameters, and the work."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from cnnlab.runtime.arguments import at_least

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """One layer. `operation` names its functions in the contract, `stride` is their last argument.

    Shapes are those of one image: (C,H,W), or (D,) after a fully connected layer.
    """

    operation: ClassVar[str]
    elementwise: ClassVar[bool] = False

    def __post_init__(self):
        for name, size in vars(self).items():
            at_least(f"{type(self).__name__}.{name}", size, 1)

    @property
    def stride(self) -> tuple[int, ...]:
        """The distance between windows; empty where the operation takes none."""
        return ()

    def output_shape(self, shape: Shape) -> Shape:
        """Shape of the output for an input of this shape; ValueError where it does not fit."""
        return shape

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        """Shapes of weights `w` and bias `b` for an input of this shape; empty if it has none."""
        return {}

    def multiply_adds(self, shape: Shape) -> int:
        """Multiply-adds of one image's forward pass; each gradient takes as many."""
        return 0


@dataclass(frozen=True)
class Conv(Layer):
    """Convolution: `filters` of K × K over all channels, stride 1, no padding."""

    operation = "conv"
    filters: int
    kernel: int

    def output_shape(self, shape: Shape) -> Shape:
        _, height, width = maps(self, shape, self.kernel)
        return self.filters, height - self.kernel + 1, width - self.kernel + 1

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"w": (self.filters, shape[0], self.kernel, self.kernel), "b": (self.filters,)}

    def multiply_adds(self, shape: Shape) -> int:
        return prod(self.output_shape(shape)) * shape[0] * self.kernel**2


@dataclass(frozen=True)
class Pool(Layer):
    """Trainable pooling: one S × S kernel and a bias for each map, windows that do not overlap."""

    operation = "pool"
    size: int

    @property
    def stride(self) -> tuple[int, ...]:
        return (self.size,)

    def output_shape(self, shape: Shape) -> Shape:
        channels, height, width = maps(self, shape, self.size)
        return channels, height // self.size, width // self.size

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"w": (shape[0], self.size, self.size), "b": (shape[0],)}

    def multiply_adds(self, shape: Shape) -> int:
        return prod(self.output_shape(shape)) * self.size**2


@dataclass(frozen=True)
class AveragePool(Pool):
    """The mean of each S × S window: a `Pool` whose weights stay 1 / S² and whose bias stays 0."""

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def fixed_weights(self, shape: Shape, dtype) -> tuple[np.ndarray, np.ndarray]:
        """The weights (C,S,S) and the bias (C) for an input of this shape."""
        weights = {"w": 1 / self.size**2, "b": 0.0}
        shapes = super().parameter_shapes(shape)
        return tuple(np.full(shapes[name], value, dtype) for name, value in weights.items())


@dataclass(frozen=True)
class MaxPool(Pool):
    """The largest element of each S × S window."""

    operation = "max_pool"

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def multiply_adds(self, shape: Shape) -> int:
        return 0


@dataclass(frozen=True)
class Dense(Layer):
    """Fully connected: each of `outputs` is a weighted sum of all inputs, plus a bias."""

    operation = "dense"
    outputs: int

    def output_shape(self, shape: Shape) -> Shape:
        return (self.outputs,)

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"w": (self.outputs, prod(shape)), "b": (self.outputs,)}

    def multiply_adds(self, shape: Shape) -> int:
        return self.outputs * prod(shape)


@dataclass(frozen=True)
class Sigmoid(Layer):
    """1 / (1 + exp(-z)), element by element."""

    operation, elementwise = "sigmoid", True


@dataclass(frozen=True)
class ReLU(Layer):
    """max(z, 0), element by element."""

    operation, elementwise = "relu", True


def maps(layer: Layer, shape: Shape, window: int) -> Shape:
    """The shape (C,H,W), if it is one of maps into which a window fits; else ValueError."""
    if len(shape) != 3 or min(shape[1:]) < window:
        raise ValueError(
            f"layers: expected maps of at least {window} × {window} for {layer}, got {shape}"
        )
    return shape
