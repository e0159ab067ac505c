"""The network as data: a tuple of layers, from which shapes, parameters, work and memory follow.

`Network()` is the one of the report *Parallelizing Convolutional Neural Networks* (2024): a
convolution, a trainable pooling and a fully connected layer, each followed by a sigmoid. Any other
tuple of layers that ends in Dense and Sigmoid will do.
"""

import functools
from collections import Counter
from dataclasses import asdict, dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.network.layers import (
    AveragePool,
    Conv,
    Dense,
    Layer,
    MaxPool,
    Pool,
    ReLU,
    Shape,
    Sigmoid,
)
from cnnlab.runtime.arguments import at_least


class Place(NamedTuple):
    """A layer in its network: its name there, and the shapes of one image's input and output."""

    name: str
    layer: Layer
    input_shape: Shape
    shape: Shape


REPORT = Conv(6, 5), Sigmoid(), Pool(4), Sigmoid(), Dense(10), Sigmoid()


@dataclass(frozen=True)
class Network:
    """Layers, one after the other, for images (C,H,W).

    `network["conv"]` is the Place of a layer; where several have one operation they are numbered,
    and an elementwise layer is named after the one below it: "conv1", "conv1_relu", "conv2". Raises
    ValueError unless each layer takes what the one before it gives, and
    the last two are Dense and Sigmoid: the loss is the cross-entropy of sigmoids.
    """

    layers: tuple[Layer, ...] = REPORT
    image_shape: tuple[int, int, int] = (1, 28, 28)

    def __post_init__(self):
        for name, size in zip(("channels", "height", "width"), self.image_shape, strict=True):
            at_least(f"image_shape: {name}", size, 1)
        if self.form[-2:] != ("Dense", "Sigmoid"):
            raise ValueError(f"layers: expected Dense and Sigmoid at the end, got {self.layers}")
        _ = self.places

    @functools.cached_property
    def form(self) -> tuple[str, ...]:
        """The kinds of the layers: strategies that fuse a whole step do so for one form."""
        return tuple(type(layer).__name__ for layer in self.layers)

    @functools.cached_property
    def places(self) -> tuple[Place, ...]:
        """The layers with their names and shapes, in their order."""
        result, shape, below, seen = [], self.image_shape, "", Counter()
        all_of = Counter(layer.operation for layer in self.layers)
        for layer in self.layers:
            kind = layer.operation
            seen[kind] += 1
            if layer.elementwise:
                name = f"{below}_{kind}".lstrip("_")
            else:
                name = kind if all_of[kind] == 1 else f"{kind}{seen[kind]}"
            result.append(Place(name, layer, shape, layer.output_shape(shape)))
            shape, below = result[-1].shape, name
        return tuple(result)

    def __getitem__(self, name: str) -> Place:
        for place in self.places:
            if place.name == name:
                return place
        raise KeyError(
            f"layer: expected one of {', '.join(p.name for p in self.places)}, got {name!r}"
        )

    @property
    def classes(self) -> int:
        """How many outputs the last layer has."""
        return self.places[-1].shape[0]

    @functools.cached_property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Name and shape of every parameter array, such as conv_w, in their order."""
        return {
            f"{place.name}_{name}": shape
            for place in self.places
            for name, shape in place.layer.parameter_shapes(place.input_shape).items()
        }

    @property
    def first_learned(self) -> int:
        """The number of the first layer with parameters; no gradient is needed below it."""
        return next(i for i, p in enumerate(self.places) if f"{p.name}_w" in self.parameter_shapes)

    @property
    def multiply_adds(self) -> dict[str, int]:
        """Multiply-adds for one image, by operation; none for the first layer's backward input."""
        work = {p.name: p.layer.multiply_adds(p.input_shape) for p in self.places}
        work = {name: n for name, n in work.items() if n}
        above = [p.name for p in self.places[self.first_learned + 1 :]]
        forward = {f"{name}_forward": n for name, n in work.items()}
        weights = {
            f"{name}_backward_weights": n
            for name, n in work.items()
            if f"{name}_w" in self.parameter_shapes
        }
        inputs = {f"{name}_backward_input": n for name, n in work.items() if name in above}
        return forward | weights | inputs

    def memory(self, n_images: int, size_of: int = 4) -> dict[str, int]:
        """Bytes for training: parameters, their gradients, and a batch's activations."""
        n = sum(map(prod, self.parameter_shapes.values())) * size_of
        activations = sum(prod(place.shape) for place in self.places) * size_of * n_images
        return {"parameters": n, "gradients": n, "activations": activations}

    def zeros(self, dtype=np.float32) -> "Parameters":
        """Arrays of zeros like the parameters: the place for gradients."""
        return Parameters(self, dtype)

    def parameters(self, seed: int = 0, dtype=np.float32) -> "Parameters":
        """Fresh parameters, the same for every strategy and dtype up to rounding.

        Weights are uniform in ±1/sqrt(fan in), biases zero (LeCun, Bottou, Orr and Müller,
        *Efficient BackProp*, 1998, section 4.6): preactivations then start within about ±1, where
        the sigmoid is steep and learns.
        """
        rng = np.random.default_rng(seed)
        params = Parameters(self, dtype)
        for name, array in zip(self.parameter_shapes, params, strict=True):
            if name.endswith("_w"):
                fan_in = array.size // len(array)
                array[:] = rng.uniform(-1, 1, array.shape) / np.sqrt(fan_in)
        return params

    def description(self) -> dict:
        """The network as plain data, for JSON; `from_description` reads it."""
        layers = [[type(layer).__name__, asdict(layer)] for layer in self.layers]
        return {"image_shape": list(self.image_shape), "layers": layers}

    @classmethod
    def from_description(cls, given: dict) -> "Network":
        """The network of a `description`; KeyError, TypeError or ValueError if it is none."""
        known = {kind.__name__: kind for kind in (Conv, Pool, AveragePool, MaxPool, Dense)}
        known |= {kind.__name__: kind for kind in (Sigmoid, ReLU)}
        layers = tuple(known[kind](**sizes) for kind, sizes in given["layers"])
        return cls(layers, tuple(given["image_shape"]))


def report_network(
    channels: int = 1,
    height: int = 28,
    width: int = 28,
    *,
    filters: int = 6,
    kernel: int = 5,
    pool: int = 4,
    classes: int = 10,
) -> Network:
    """The report's network with other sizes."""
    layers = Conv(filters, kernel), Sigmoid(), Pool(pool), Sigmoid(), Dense(classes), Sigmoid()
    return Network(layers, (channels, height, width))


# After LeNet-5 (LeCun, Bottou, Bengio and Haffner, 1998, section II.B), with max pooling and ReLU.
LENET5 = Network(
    (
        *(Conv(6, 5), ReLU(), MaxPool(2), Conv(16, 5), ReLU(), MaxPool(2)),
        *(Dense(120), ReLU(), Dense(84), ReLU(), Dense(10), Sigmoid()),
    )
)
# Eight layers that learn. Each of the first three takes about as much work as all others together,
# so that a pipeline of four stages can be balanced.
EIGHT = Network(
    (
        *(Conv(8, 5), ReLU(), MaxPool(2), Conv(16, 3), ReLU(), Conv(12, 3), ReLU()),
        *(Conv(12, 3), ReLU(), Conv(16, 3), ReLU(), Conv(24, 3), ReLU()),
        *(Dense(64), ReLU(), Dense(10), Sigmoid()),
    )
)
REPORT_FORM = Network().form
NETWORKS = {"report": Network(), "lenet5": LENET5, "eight": EIGHT}


class Parameters:
    """The parameter arrays (or their gradients), all views of one buffer `flat`.

    Each is an attribute, such as `conv_w`. Updating, sending or saving the network is one operation
    on `flat`. It may be given, as a contiguous array of the right size; otherwise it is new, and
    zero.
    """

    def __init__(self, network: Network, dtype=np.float32, flat: np.ndarray | None = None):
        shapes = network.parameter_shapes
        self.network = network
        self.flat = np.zeros(sum(map(prod, shapes.values())), dtype) if flat is None else flat
        arrays, start = [], 0
        for name, shape in shapes.items():
            arrays.append(self.flat[start : start + prod(shape)].reshape(shape))
            setattr(self, name, arrays[-1])
            start += prod(shape)
        self.arrays = tuple(arrays)

    def __iter__(self):
        return iter(self.arrays)

    def at(self, place: Place) -> tuple[np.ndarray, ...]:
        """Weights and bias of a layer, those of an AveragePool included; else empty."""
        if isinstance(place.layer, AveragePool):
            return place.layer.fixed_weights(place.input_shape, self.flat.dtype)
        names = place.layer.parameter_shapes(place.input_shape)
        return tuple(getattr(self, f"{place.name}_{name}") for name in names)

    def copy(self) -> "Parameters":
        """A copy with its own buffer."""
        return Parameters(self.network, flat=self.flat.copy())
