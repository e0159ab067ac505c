"""The network as data: layers, shapes, parameters; and kernels composed into a training step.

The network is the one of the report *Parallelizing Convolutional Neural Networks* (2024): a
convolution, a trainable pooling and a fully connected layer, each followed by a sigmoid.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cnnlab.kernels.contract import Strategy, check_array, check_labels


@dataclass(frozen=True)
class Network:
    """The sizes of the network; everything else about it follows from them.

    The convolution has stride 1 and no padding; the pooling windows do not overlap.
    """

    channels: int = 1
    height: int = 28
    width: int = 28
    filters: int = 6
    kernel: int = 5
    pool: int = 4
    classes: int = 10

    def __post_init__(self):
        for name, size in vars(self).items():
            if not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(f"{name} should be a whole number of at least 1, got {size!r}")
        smallest = self.kernel + self.pool - 1
        if min(self.height, self.width) < smallest:
            raise ValueError(
                f"height and width should be at least kernel + pool - 1 = {smallest}, "
                f"got {self.height} x {self.width}"
            )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Shape of one input image, (C, H, W)."""
        return self.channels, self.height, self.width

    @property
    def conv_shape(self) -> tuple[int, int, int]:
        """Shape of the convolution's output for one image."""
        return self.filters, self.height - self.kernel + 1, self.width - self.kernel + 1

    @property
    def pool_shape(self) -> tuple[int, int, int]:
        """Shape of the pooling's output for one image."""
        filters, rows, columns = self.conv_shape
        return filters, rows // self.pool, columns // self.pool

    @property
    def features(self) -> int:
        """Inputs of the fully connected layer."""
        return int(np.prod(self.pool_shape))

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of the six parameter arrays, in their order."""
        return {
            "conv_w": (self.filters, self.channels, self.kernel, self.kernel),
            "conv_b": (self.filters,),
            "pool_w": (self.filters, self.pool, self.pool),
            "pool_b": (self.filters,),
            "dense_w": (self.classes, self.features),
            "dense_b": (self.classes,),
        }

    @property
    def multiply_adds(self) -> dict[str, int]:
        """Multiply-adds for one image; the first layer's backward input is not needed."""
        conv = int(np.prod(self.conv_shape)) * self.channels * self.kernel**2
        pool = self.features * self.pool**2
        dense = self.classes * self.features
        forward = {"conv_forward": conv, "pool_forward": pool, "dense_forward": dense}
        weights = {"conv_backward_weights": conv, "pool_backward_weights": pool}
        inputs = {"pool_backward_input": pool, "dense_backward_input": dense}
        return forward | weights | {"dense_backward_weights": dense} | inputs

    def zeros(self, dtype=np.float32) -> "Parameters":
        """Six arrays of zeros: the place for gradients."""
        return Parameters(self, dtype)

    def parameters(self, seed: int = 0, dtype=np.float32) -> "Parameters":
        """Fresh parameters, the same for every strategy and dtype up to rounding.

        Weights are uniform in ±1/sqrt(fan in), biases zero (LeCun, Bottou, Orr and Müller,
        *Efficient BackProp*, 1998, section 4.6): preactivations then start within about ±1, where
        the sigmoid is steep and learns.
        """
        rng = np.random.default_rng(seed)
        params = Parameters(self, dtype)
        for array in (params.conv_w, params.pool_w, params.dense_w):
            fan_in = array.size // len(array)
            array[:] = rng.uniform(-1, 1, array.shape) / np.sqrt(fan_in)
        return params


class Parameters:
    """The six parameter arrays (or their gradients), all views of one buffer `flat`.

    Updating, sending or saving the network is one operation on `flat`. It may be given, as a
    contiguous array of the right size; otherwise it is new, and zero.
    """

    def __init__(self, network: Network, dtype=np.float32, flat: np.ndarray | None = None):
        shapes = network.parameter_shapes
        self.network = network
        size = sum(int(np.prod(shape)) for shape in shapes.values())
        self.flat = np.zeros(size, dtype) if flat is None else flat
        arrays = []
        start = 0
        for name, shape in shapes.items():
            stop = start + int(np.prod(shape))
            arrays.append(self.flat[start:stop].reshape(shape))
            setattr(self, name, arrays[-1])
            start = stop
        self.arrays = tuple(arrays)

    def __iter__(self):
        return iter(self.arrays)

    def copy(self) -> "Parameters":
        """A copy with its own buffer."""
        other = Parameters(self.network, self.flat.dtype)
        other.flat[:] = self.flat
        return other


class Activations(NamedTuple):
    """Outputs of the three layers after their sigmoids: (N,F,P,Q), (N,D) and (N,O)."""

    conv: np.ndarray
    pool: np.ndarray
    dense: np.ndarray


def forward(strategy: Strategy, params: Parameters, x: np.ndarray) -> Activations:
    """Run a batch x (N,C,H,W) of the strategy's dtype through the network, layer by layer."""
    check_batch(strategy, params, x)
    kernel, net, n_images = strategy.kernel, params.network, len(x)
    conv_z, conv_y = np.empty((2, n_images, *net.conv_shape), strategy.dtype)
    kernel("conv_forward")(x, params.conv_w, params.conv_b, conv_z)
    kernel("sigmoid")(conv_z, conv_y)
    pool_z, pool_y = np.empty((2, n_images, *net.pool_shape), strategy.dtype)
    kernel("pool_forward")(conv_y, params.pool_w, params.pool_b, pool_z, net.pool)
    kernel("sigmoid")(pool_z, pool_y)
    pool_y = pool_y.reshape(n_images, net.features)
    dense_z, dense_y = np.empty((2, n_images, net.classes), strategy.dtype)
    kernel("dense_forward")(pool_y, params.dense_w, params.dense_b, dense_z)
    kernel("sigmoid")(dense_z, dense_y)
    return Activations(conv_y, pool_y, dense_y)


def loss_and_gradients(
    strategy: Strategy, params: Parameters, x: np.ndarray, labels: np.ndarray, grads: Parameters
) -> float:
    """Loss of a batch x (N,C,H,W) with int64 labels (N), and its gradients written to `grads`.

    Loss and gradients are summed over the batch. A strategy that offers `loss_and_gradients` whole
    is asked for that; for the others it is composed here from the contract. Raises ValueError or
    TypeError on bad arguments.
    """
    check_gradients(strategy, params, x, labels, grads)
    with strategy.lock:
        return fused_or_composed(strategy, params, x, labels, grads)


def chosen_gradients(strategy, params, images, labels, chosen, grads) -> float:
    """`loss_and_gradients` of the images number `chosen` (N), without the checks.

    For loops over batches that were checked as a whole, see `training.sgd_steps`.
    """
    with strategy.lock:
        if strategy.sgd_steps:  # these find the images where they lie
            fused = strategy.module.loss_and_gradients
            return float(fused(params.arrays, images, labels, grads.arrays, chosen))
        x = strategy.take(images, chosen)
        return fused_or_composed(strategy, params, x, labels[chosen], grads)


def fused_or_composed(strategy, params, x, labels, grads) -> float:
    """Loss and gradients by the strategy's own `loss_and_gradients`, or else by its contract."""
    fused = getattr(strategy.module, "loss_and_gradients", None)
    if fused:
        return float(fused(params.arrays, x, labels, grads.arrays))
    return composed(strategy, params, x, labels, grads)


def check_gradients(strategy, params, x, labels, grads) -> None:
    """Check images, their labels, parameters and the place for their gradients."""
    check_batch(strategy, params, x)
    check_array("labels", labels, np.int64)
    if labels.shape != x.shape[:1]:
        raise ValueError(
            f"labels should have shape {x.shape[:1]}, one for each image, got {labels.shape}"
        )
    check_labels(labels, params.network.classes)
    check_parameters("grads", grads)
    like = grads.network is params.network or grads.network == params.network
    if not like or grads.flat.dtype != params.flat.dtype:
        raise ValueError(
            f"grads should be like params, {params.network} in {params.flat.dtype}, "
            f"got {grads.network} in {grads.flat.dtype}"
        )
    if grads is params or not all(array.flags.writeable for array in grads):
        raise ValueError(
            "grads should be writeable arrays other than those of params, got "
            + ("params" if grads is params else "a read-only array")
        )


def composed(strategy, params, x, labels, grads) -> float:
    """`loss_and_gradients` composed from the contract's functions, for a whole batch at once."""
    kernel, net = strategy.kernel, params.network
    conv_y, pool_y, dense_y = forward(strategy, params, x)

    dense_dz = np.empty_like(dense_y)
    loss = kernel("cross_entropy")(dense_y, labels, dense_dz)
    kernel("dense_backward_weights")(pool_y, dense_dz, grads.dense_w)
    kernel("dense_backward_bias")(dense_dz, grads.dense_b)

    pool_dy, pool_dz = np.empty_like(pool_y), np.empty_like(pool_y)
    kernel("dense_backward_input")(dense_dz, params.dense_w, pool_dy)
    kernel("sigmoid_backward")(pool_y, pool_dy, pool_dz)
    pool_dz = pool_dz.reshape(len(x), *net.pool_shape)
    kernel("pool_backward_weights")(conv_y, pool_dz, grads.pool_w, net.pool)
    kernel("pool_backward_bias")(pool_dz, grads.pool_b)

    conv_dy, conv_dz = np.empty_like(conv_y), np.empty_like(conv_y)
    kernel("pool_backward_input")(pool_dz, params.pool_w, conv_dy, net.pool)
    kernel("sigmoid_backward")(conv_y, conv_dy, conv_dz)
    kernel("conv_backward_weights")(x, conv_dz, grads.conv_w)
    kernel("conv_backward_bias")(conv_dz, grads.conv_b)
    return float(loss)


def check_batch(strategy: Strategy, params: Parameters, x: np.ndarray) -> None:
    """Check that a batch and the parameters fit each other and the strategy."""
    check_parameters("params", params)
    check_array("x", x, strategy.dtype)
    if params.flat.dtype != strategy.dtype:
        raise TypeError(f"params should have dtype {strategy.dtype}, got {params.flat.dtype}")
    if x.ndim != 4 or x.shape[1:] != params.network.image_shape or len(x) == 0:
        raise ValueError(
            f"x should have shape (N, *{params.network.image_shape}), N > 0, got {x.shape}"
        )


def check_parameters(argument: str, value) -> None:
    """Check that a value is Parameters."""
    if not isinstance(value, Parameters):
        raise TypeError(
            f"{argument} should be Parameters, as a Network makes them, got {type(value).__name__}"
        )
