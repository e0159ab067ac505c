"""The network as data: an ordered graph of layers, from which all else follows.

`Network()` is the one of the report *Parallelizing Convolutional Neural Networks* (2024): a
convolution, a trainable pooling and a fully connected layer, each followed by a sigmoid. Any other
layers that end in Dense and Sigmoid will do, one after the other or with branches.
"""

import functools
from collections import Counter
from dataclasses import asdict, dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.network.layers import (  # isort: skip
    Add, AveragePool, Concat, Conv, Dense, Layer, MaxPool, Pad, Pool, ReLU, Shape, Sigmoid,
)  # fmt: skip
from cnnlab.runtime.arguments import at_least, one_of


class Place(NamedTuple):
    """A layer in its network: its name there, and the shapes of one image's input and output.

    `sources` are the layers whose outputs it takes, −1 the image; `input_shape` is the first one's.
    """

    name: str
    layer: Layer
    input_shape: Shape
    shape: Shape
    sources: tuple[int, ...]


# Usual rates, with batches of 16: lesson 04 shows the choice of the first, on MNIST.
SIGMOID_RATE, RELU_RATE = 0.4, 0.03
REPORT = Conv(6, 5), Sigmoid(), Pool(4), Sigmoid(), Dense(10), Sigmoid()
IMAGE = "image"


@dataclass(frozen=True)
class Network:
    """Layers for images (C,H,W), in an order in which each takes what some before it give.

    An entry of `layers` is a layer, which takes the output of the one before it, or a tuple: its
    name, the layer and the names of its sources, as in `("sum", Add(), "conv2", "image")`; without
    sources, that is again the one before.

    `network["conv"]` is the Place of a layer. Those without a name have that of their operation,
    numbered where it has several; an elementwise layer is named after its source: "conv1",
    "conv1_relu", "conv2". `rate` is the usual learning rate, see `usual_rate`. Raises ValueError
    unless each layer takes what its sources give, each output but the last is taken, and the last
    two layers are Dense and Sigmoid: the loss is the cross-entropy of sigmoids.
    """

    layers: tuple[Layer | tuple, ...] = REPORT
    image_shape: tuple[int, int, int] = (1, 28, 28)
    rate: float | None = field(default=None, compare=False)

    def __post_init__(self):
        for name, size in zip(("channels", "height", "width"), self.image_shape, strict=True):
            at_least(f"image_shape: {name}", size, 1)
        taken = {i for place in self.places for i in place.sources}
        if ends := [p.name for i, p in enumerate(self.places[:-1]) if i not in taken]:
            raise ValueError(f"layers: expected each output to be taken, not so {', '.join(ends)}")
        if self.form[-2:] != ("Dense", "Sigmoid"):
            raise ValueError(f"layers: expected Dense and Sigmoid at the end, got {self.layers}")

    @functools.cached_property
    def form(self) -> tuple[str, ...]:
        """The kinds of the layers: strategies that fuse a whole step do so for one form.

        Strides other than the windows' size belong to it, and sources other than the layer before.
        """
        result = []
        for i, (_, layer, *_, sources) in enumerate(self.places):
            stride = "" if getattr(layer, "side_by_side", True) else f" by {layer.stride}"
            result.append(f"{type(layer).__name__}{stride}{'' if sources == (i - 1,) else sources}")
        return tuple(result)

    @property
    def entries(self) -> list[tuple]:
        """The layers as tuples: name ("" where there is none), layer, names of its sources."""
        return [entry if isinstance(entry, tuple) else ("", entry) for entry in self.layers]

    @functools.cached_property
    def places(self) -> tuple[Place, ...]:
        """The layers with their names, shapes and sources, in their order."""
        result, shapes, seen = [], {-1: self.image_shape}, Counter()
        names = {IMAGE: -1}  # and the numbers of their layers
        all_of = Counter(layer.operation for name, layer, *_ in self.entries if not name)
        for i, (name, layer, *given) in enumerate(self.entries):
            for source in given:
                one_of(f"layers: a source of {layer}", source, names)
            sources = tuple(names[source] for source in given) or (i - 1,)
            if len(sources) > 1 and not isinstance(layer, Concat | Add):
                raise ValueError(f"layers: expected one source of {layer}, got {', '.join(given)}")
            if not name:
                kind = layer.operation
                seen[kind] += 1
                name = kind if all_of[kind] == 1 else f"{kind}{seen[kind]}"
                if layer.elementwise:
                    name = kind if sources[0] < 0 else f"{result[sources[0]].name}_{kind}"
            if name in names or not name.isidentifier():
                what = f"an identifier for {layer} that no other layer has"
                raise ValueError(f"layers: expected {what}, got {name!r}")
            names[name], shapes[i] = i, layer.output_shape(*(shapes[j] for j in sources))
            result.append(Place(name, layer, shapes[sources[0]], shapes[i], sources))
        return tuple(result)

    def check_sequence(self) -> None:
        """ValueError unless the layers follow one another, so that the network can be cut."""
        for i, place in enumerate(self.places):
            if place.sources != (i - 1,):
                name = next((name for name, net in NETWORKS.items() if net == self), "a graph")
                got = f"got {name}, whose {place.name} has other sources"
                raise ValueError(f"network: expected layers in sequence, to cut there, {got}")

    @functools.cached_property
    def learning(self) -> list[bool]:
        """Whether the output of each layer depends on parameters, so that it needs a gradient."""
        result = [False]  # at last: source −1 is the image
        for _, layer, shape, _, sources in self.places:
            below = any(result[i] for i in sources)
            result.insert(-1, below or bool(layer.parameter_shapes(shape)))
        return result

    @property
    def usual_rate(self) -> float:
        """The rate of plain gradient descent to begin with: `rate`, or one that the layers bear."""
        return self.rate or (RELU_RATE if "ReLU" in self.form else SIGMOID_RATE)

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
        return self.learning.index(True)

    @property
    def multiply_adds(self) -> dict[str, int]:
        """Multiply-adds for one image, by operation; none for the first layer's backward input."""
        work = {p.name: p.layer.multiply_adds(p.input_shape) for p in self.places}
        work = {name: n for name, n in work.items() if n}
        above = [p.name for p in self.places if any(self.learning[i] for i in p.sources)]
        forward = {f"{name}_forward": n for name, n in work.items()}
        weights = {
            f"{name}_backward_weights": n
            for name, n in work.items()
            if f"{name}_w" in self.parameter_shapes
        }
        inputs = {f"{name}_backward_input": n for name, n in work.items() if name in above}
        return forward | weights | inputs

    def zeros(self, dtype=np.float32) -> "Parameters":
        """Arrays of zeros like the parameters: the place for gradients."""
        return Parameters(self, dtype)

    def parameters(self, seed: int = 0, dtype=np.float32) -> "Parameters":
        """Fresh parameters, the same for every strategy and dtype up to rounding.

        Biases are zero, weights uniform. Where a sigmoid follows, within ±1/√(fan in), so that
        preactivations start within about ±1, where it is steep and learns (LeCun, Bottou, Orr and
        Müller, *Efficient BackProp*, 1998, section 4.6); where a ReLU does, within ±√6/√(fan in),
        so that it passes on what varies as its inputs do (He, Zhang, Ren and Sun, *Delving Deep
        into Rectifiers*, 2015, section 2.2). Behind ReLU, each output begins at 1/classes, by the
        last bias (Lin and others, *Focal Loss*, 2017, section 3.3): no first steps for that alone.
        """
        rng = np.random.default_rng(seed)
        params = Parameters(self, dtype)
        for i, place in enumerate(self.places):
            if place.layer.parameter_shapes(place.input_shape):
                array, _ = params.at(place)
                activation = next(p.layer for p in self.places[i:] if p.layer.elementwise)
                bound = np.sqrt(6) if isinstance(activation, ReLU) else 1
                fan_in = array.size // len(array)
                array[:] = rng.uniform(-1, 1, array.shape) * bound / np.sqrt(fan_in)
        if self.classes > 1 and "ReLU" in self.form:
            params.arrays[-1][:] = -np.log(self.classes - 1)
        return params

    def description(self) -> dict:
        """The network as plain data, for JSON; `from_description` reads it."""
        layers = [
            [type(layer).__name__, asdict(layer), *([name, *sources] if name or sources else [])]
            for name, layer, *sources in self.entries
        ]
        return {"image_shape": list(self.image_shape), "layers": layers, "rate": self.rate}

    @classmethod
    def from_description(cls, given: dict) -> "Network":
        """The network of a `description`; KeyError, TypeError or ValueError if it is none."""
        kinds = Conv, Pool, AveragePool, MaxPool, Dense, Sigmoid, ReLU, Pad, Concat, Add
        known, layers = {kind.__name__: kind for kind in kinds}, []
        for kind, sizes, *named in given["layers"]:
            layer = known[kind](**sizes)
            layers.append((named[0], layer, *named[1:]) if named else layer)
        return cls(tuple(layers), tuple(given["image_shape"]), given.get("rate"))


# After LeNet-5 (LeCun, Bottou, Bengio and Haffner, 1998, section II.B), with max pooling and ReLU.
LENET5 = Network(
    (
        *(Conv(6, 5), ReLU(), MaxPool(2), Conv(16, 5), ReLU(), MaxPool(2)),
        *(Dense(120), ReLU(), Dense(84), ReLU(), Dense(10), Sigmoid()),
    ),
    rate=0.05,
)
# Eight layers that learn. Each of the first three takes about as much work as all others together,
# so that a pipeline of four stages can be balanced.
EIGHT = Network(
    (
        *(Conv(8, 5), ReLU(), MaxPool(2), Conv(16, 3), ReLU(), Conv(12, 3), ReLU()),
        *(Conv(12, 3), ReLU(), Conv(16, 3), ReLU(), Conv(24, 3), ReLU()),
        *(Dense(64), ReLU(), Dense(10), Sigmoid()),
    ),
    rate=0.03,
)
# A small block after Inception (Szegedy and others 2015, figure 2b), between a convolution and a
# dense end: 1×1, 3×3 and 5×5 filters and a pooling look at the same maps, side by side.
INCEPTION = Network(
    (
        *(Conv(8, 5), ReLU(), ("stem", MaxPool(2))),
        *(("one", Conv(8, 1), "stem"), ReLU()),
        *(("three_reduced", Conv(6, 1), "stem"), ReLU(), Pad(1), ("three", Conv(12, 3)), ReLU()),
        *(("five_reduced", Conv(4, 1), "stem"), ReLU(), Pad(2), ("five", Conv(8, 5)), ReLU()),
        *(("around", Pad(1), "stem"), MaxPool(3, 1), ("pooled", Conv(4, 1)), ReLU()),
        ("block", Concat(), "one_relu", "three_relu", "five_relu", "pooled_relu"),
        *(MaxPool(2), Dense(32), ReLU(), Dense(10), Sigmoid()),
    ),
    rate=0.05,
)
# Two blocks after He and others, *Deep Residual Learning* (2016, figure 2): what they compute is
# added to their input.
RESIDUAL = Network(
    (
        *(Conv(8, 5), ReLU(), ("first", MaxPool(2))),
        *(Pad(1), Conv(8, 3), ReLU(), Pad(1), ("change1", Conv(8, 3))),
        *(("sum1", Add(), "change1", "first"), ("second", ReLU())),
        *(Pad(1), Conv(8, 3), ReLU(), Pad(1), ("change2", Conv(8, 3))),
        *(("sum2", Add(), "change2", "second"), ReLU()),
        *(MaxPool(2), Dense(32), ReLU(), Dense(10), Sigmoid()),
    ),
    rate=0.05,
)
REPORT_FORM = Network().form
NETWORKS = {"report": Network(), "lenet5": LENET5, "eight": EIGHT}
NETWORKS |= {"inception": INCEPTION, "residual": RESIDUAL}


class Parameters:
    """The parameter arrays (or their gradients), all views of one buffer `flat`.

    Each is an attribute, such as `conv_w`. Updating, sending or saving the network is one operation
    on `flat`. It may be given, as a contiguous array of the right size; else it is new, and zero.
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
