"""The network's work and time by layer: what each counts, what it takes, its share."""

from collections.abc import Mapping, Sequence

from cnnlab.bench.operations import LAYERS, layers
from cnnlab.bench.steps import EPOCH
from cnnlab.network import Network

SIGMOID = "sigmoid"


def multiply_adds() -> dict[str, int]:
    """The multiply-adds of an image in each layer, forward and backward."""
    found = dict.fromkeys(LAYERS.values(), 0)
    for operation, count in Network().multiply_adds.items():
        found[LAYERS[operation.split("_")[0]]] += count
    return found


def seconds(names: Sequence[str], batch: int, repeats: int = 15) -> dict[str, dict[str, float]]:
    """The seconds of an epoch in each layer and in the sigmoid, by strategy: operations added up.

    Each is timed alone, see `bench.layers`; the loss counts as sigmoid.
    """
    found = {name: dict.fromkeys([*LAYERS.values(), SIGMOID], 0.0) for name in names}
    for operation, timings in layers(names, batch, repeats).items():
        layer = LAYERS.get(operation.split("_")[0], SIGMOID)
        for name in names:
            found[name][layer] += timings[name].median * EPOCH / batch
    return found


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Each layer's share of what the three layers take together: a sigmoid does not count."""
    total = sum(parts[layer] for layer in LAYERS.values())
    return {layer: parts[layer] / total for layer in LAYERS.values()}
