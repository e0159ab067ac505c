"""Single operations of the contract at the network's sizes, each proved before it is timed."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cnnlab.bench import measure
from cnnlab.kernels import CONTRACT, KERNELS
from cnnlab.kernels.contract import STRIDES
from cnnlab.network import Network

LAYERS = {"conv": "convolution", "pool": "pooling", "dense": "fully connected"}


def layers(names: Sequence[str], batch: int, repeats: int) -> dict[str, dict[str, measure.Timing]]:
    """Seconds of each operation, checked and alternated: operation → strategy → Timing."""
    return {
        operation: measure.compare(
            {name: layer_call(name, operation, batch) for name in names}, repeats=repeats
        )
        for operation in layer_shapes(batch)
    }


def layer_shapes(batch: int) -> dict[str, dict[str, tuple[int, ...]]]:
    """Shapes of the arguments of every operation that a training step of the network performs."""
    net = Network()
    conv, pool, dense = net["conv"], net["pool"], net["dense"]
    sizes = {"N": batch, "D": dense.input_shape, "O": dense.shape}
    sizes = {letter: size if letter == "N" else prod(size) for letter, size in sizes.items()}
    letters = {
        "conv": sizes | named("CHW", conv.input_shape) | named("FPQ", conv.shape),
        "pool": sizes | named("CHW", pool.input_shape) | named("CPQ", pool.shape),
        "dense": sizes,
    }
    letters["conv"]["K"], letters["pool"]["K"] = conv.layer.kernel, pool.layer.size
    shapes = {}
    for operation, arguments in CONTRACT.items():
        of = letters.get(operation.split("_")[0], sizes)
        shapes[operation] = {
            name: (batch, *conv.shape) if text == "..." else tuple(of[i] for i in text)
            for name, text in arguments.items()
        }
    del shapes["conv_backward_input"]  # the first layer: nobody needs it
    return shapes


def named(letters: str, shape: Sequence[int]) -> dict[str, int]:
    """The sizes of a shape by their letters."""
    return dict(zip(letters, shape, strict=True))


def layer_call(name: str, operation: str, batch: int) -> Callable[[], object]:
    """A call of one operation on the network's shapes, proved against the reference."""
    strategy, rng, net = KERNELS[name], np.random.default_rng(0), Network()
    arrays = [
        rng.integers(0, net.classes, shape)
        if argument == "labels"
        else rng.uniform(0.02, 0.98, shape).astype(strategy.dtype)
        for argument, shape in layer_shapes(batch)[operation].items()
    ]
    stride = net["pool"].layer.stride if operation.startswith("pool") else (1,)
    options = stride if operation in STRIDES else ()
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays]
    getattr(KERNELS["reference"], operation)(*exact, *options)
    getattr(strategy, operation)(*arrays, *options)
    measure.same(arrays[-1], exact[-1], name=f"{operation} of {name}")
    kernel = strategy.kernel(operation)
    if on_device := strategy.optional("on_device"):  # on a GPU, without the way there and back
        arrays = [on_device(a) for a in arrays]
    return lambda: kernel(*arrays, *options)
