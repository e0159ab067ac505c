"""Single operations at the sizes of the report's network, each checked before it is timed."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cnnlab.bench import measure
from cnnlab.kernels import CONTRACT, KERNELS
from cnnlab.kernels.contract import STRIDES
from cnnlab.network import Network, Place
from cnnlab.runtime.arguments import one_of

LAYERS = {"conv": "convolution", "pool": "pooling", "dense": "fully connected"}


def layers(names: Sequence[str], batch: int, repeats: int) -> dict[str, dict[str, measure.Timing]]:
    """Times of each operation by each strategy, alternated: operation → strategy → Timing."""
    return {
        operation: measure.compare(
            {name: layer_call(name, operation, batch) for name in names}, repeats=repeats
        )
        for operation in layer_shapes(batch)
    }


def layer_shapes(batch: int) -> dict[str, dict[str, tuple[int, ...]]]:
    """Argument shapes of each operation in a training step: operation → argument → shape."""
    known = layer_sizes(batch)
    return {
        operation: shapes(operation, batch)
        for operation in CONTRACT
        if operation.split("_")[0] in known
        and operation != "conv_backward_input"  # the first layer's, which no step needs
    }


def shapes(operation: str, batch: int) -> dict[str, tuple[int, ...]]:
    """Argument shapes of an operation at the network's sizes, by argument."""
    known = layer_sizes(batch)
    one_of("operation", operation, [each for each in CONTRACT if each.split("_")[0] in known])
    sizes = known[operation.split("_")[0]]
    return {
        name: (batch, *Network()["conv"].shape)
        if letters == "..."
        else tuple(sizes[i] for i in letters)
        for name, letters in CONTRACT[operation].items()
    }


def layer_sizes(batch: int) -> dict[str, dict[str, int]]:
    """Sizes of the network's layers by the letters of the contract: layer → letter → size."""
    net = Network()
    conv, pool, dense = net["conv"], net["pool"], net["dense"]
    rows = {"N": batch, "D": prod(dense.input_shape), "O": prod(dense.shape)}
    return {
        "conv": {"N": batch, "K": conv.layer.kernel} | named("CHWFPQ", conv),
        "pool": {"N": batch, "K": pool.layer.size} | named("CHWCPQ", pool),
        "dense": rows,
        "sigmoid": {},
        "cross": rows,
    }


def named(letters: str, place: Place) -> dict[str, int]:
    """The sizes of a layer's input and output, one for each letter."""
    return dict(zip(letters, place.input_shape + place.shape, strict=True))


def layer_call(name: str, operation: str, batch: int) -> Callable[[], object]:
    """A checked call of one operation by a strategy, at the network's sizes."""
    strategy = KERNELS[name]
    arrays, options = layer_arguments(operation, batch, strategy.dtype)
    checked(operation, name, getattr(strategy, operation), arrays, options)
    kernel = strategy.kernel(operation)
    if on_device := strategy.optional("on_device"):  # a GPU is timed without copies
        arrays = [on_device(a) for a in arrays]
    return lambda: kernel(*arrays, *options)


def layer_arguments(operation: str, batch: int, dtype=np.float32) -> tuple[list, tuple]:
    """Random arrays for an operation at the network's sizes, and the stride if it takes one."""
    rng, net = np.random.default_rng(0), Network()
    arrays = [
        rng.integers(0, net.classes, shape)
        if argument == "labels"
        else rng.uniform(0.02, 0.98, shape).astype(dtype)
        for argument, shape in shapes(operation, batch).items()
    ]
    stride = net["pool"].layer.stride if operation.startswith("pool") else (1,)
    return arrays, stride if operation in STRIDES else ()


def checked(operation: str, name: str, kernel: Callable, arrays: list, options: tuple) -> None:
    """Run a kernel once; raise AssertionError unless the last array is as in the reference."""
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays]
    getattr(KERNELS["reference"], operation)(*exact, *options)
    kernel(*arrays, *options)
    measure.same(arrays[-1], exact[-1], name=f"{operation} of {name}")
