"""The layers: from the shape of an input follow those of output and parameters, and the work."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from cnnlab.runtime.arguments import at_least

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """One layer. `operation` names its functions in the contract, which take `arguments` at last.

    Shapes are those of one image: (C,H,W), or (D,) after a fully connected layer.
    """

    operation: ClassVar[str]
    elementwise: ClassVar[bool] = False

    def __post_init__(self):
        for name, size in vars(self).items():
            at_least(f"{type(self).__name__}.{name}", size, 1)

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the operation takes after its arrays: a pooling's stride, else nothing."""
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
    """Trainable pooling: one S × S kernel and a bias for each map; windows lie `stride` apart."""

    operation = "pool"
    size: int
    stride: int | None = None  # None: side by side

    def __post_init__(self):
        if self.stride is None:
            object.__setattr__(self, "stride", self.size)
        super().__post_init__()

    @property
    def side_by_side(self) -> bool:
        """Whether windows neither overlap nor leave gaps."""
        return self.stride == self.size

    @property
    def arguments(self) -> tuple[int, ...]:
        return (self.stride,)

    def output_shape(self, shape: Shape) -> Shape:
        channels, *sides = maps(self, shape, self.size)
        return channels, *((side - self.size) // self.stride + 1 for side in sides)

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
    """The largest element of each S × S window; the operation wants them side by side: `apart`."""

    operation = "max_pool"

    @property
    def arguments(self) -> tuple[int, ...]:
        return (self.size,)

    def parameter_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def multiply_adds(self, shape: Shape) -> int:
        return 0

    def apart(self, x: np.ndarray) -> np.ndarray:
        """x (N,C,H,W), or a copy in which its windows are side by side: (N,C,P·S,Q·S)."""
        if self.side_by_side:
            return x
        seen = np.lib.stride_tricks.sliding_window_view(x, (self.size, self.size), axis=(2, 3))
        seen = seen[:, :, :: self.stride, :: self.stride].swapaxes(3, 4)
        n, c, p, s, q, _ = seen.shape
        return np.ascontiguousarray(seen.reshape(n, c, p * s, q * s))

    def together(self, apart: np.ndarray, dx: np.ndarray) -> None:
        """Gradients of windows side by side → dx (N,C,H,W): where windows overlap, their sums."""
        if self.side_by_side:
            return
        rows, columns = (self.stride * (n // self.size - 1) + 1 for n in apart.shape[2:])
        dx[:] = 0
        for k in range(self.size):
            for l in range(self.size):
                window = dx[:, :, k : k + rows : self.stride, l : l + columns : self.stride]
                window += apart[:, :, k :: self.size, l :: self.size]


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


@dataclass(frozen=True)
class Moving(Layer):
    """A layer that moves or adds what there is. NumPy does so, the same for every strategy.

    `move(inputs, y)`: inputs (N, …) → output y (N, …). `move_back(inputs, dy, inner)`: its gradient
    dy → those of the inputs, None for one where nobody needs it.
    """


@dataclass(frozen=True)
class Pad(Moving):
    """Zeros around each map: so many rows above and below, columns left and right."""

    operation = "pad"
    width: int

    def output_shape(self, shape: Shape) -> Shape:
        channels, height, width = maps(self, shape, 1)
        return channels, height + 2 * self.width, width + 2 * self.width

    def move(self, inputs: list, y: np.ndarray) -> None:
        y[:] = 0
        y[:, :, self.width : -self.width, self.width : -self.width] = inputs[0]

    def move_back(self, inputs: list, dy: np.ndarray, inner: list) -> None:
        if inner[0] is not None:
            inner[0][:] = dy[:, :, self.width : -self.width, self.width : -self.width]


@dataclass(frozen=True)
class Concat(Moving):
    """Several inputs one after the other along the channels; maps agree in height and width."""

    operation = "concat"

    def output_shape(self, *shapes: Shape) -> Shape:
        alike(self, {shape[1:] for shape in shapes}, shapes)
        return sum(shape[0] for shape in shapes), *shapes[0][1:]

    def move(self, inputs: list, y: np.ndarray) -> None:
        np.concatenate(inputs, axis=1, out=y)

    def move_back(self, inputs: list, dy: np.ndarray, inner: list) -> None:
        first = 0
        for x, dx in zip(inputs, inner, strict=True):
            if dx is not None:
                dx[:] = dy[:, first : first + x.shape[1]]
            first += x.shape[1]


@dataclass(frozen=True)
class Add(Moving):
    """The sum of several inputs of one shape, element by element."""

    operation = "add"

    def output_shape(self, *shapes: Shape) -> Shape:
        alike(self, set(shapes), shapes)
        return shapes[0]

    def move(self, inputs: list, y: np.ndarray) -> None:
        y[:] = sum(inputs[1:], inputs[0])

    def move_back(self, inputs: list, dy: np.ndarray, inner: list) -> None:
        for dx in inner:
            if dx is not None:
                dx[:] = dy


def alike(layer: Layer, common: set, shapes: tuple[Shape, ...]) -> None:
    """ValueError unless the shapes have one value in common."""
    if len(common) != 1:
        got = ", ".join(map(str, shapes))
        raise ValueError(f"layers: expected inputs that fit each other for {layer}, got {got}")


def maps(layer: Layer, shape: Shape, window: int) -> Shape:
    """The shape (C,H,W), if it is one of maps into which a window fits; else ValueError."""
    if len(shape) != 3 or min(shape[1:]) < window:
        raise ValueError(
            f"layers: expected maps of at least {window} × {window} for {layer}, got {shape}"
        )
    return shape
