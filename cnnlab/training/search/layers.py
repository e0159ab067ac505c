"""The layers of a network as plain data that can be drawn and mutated, for evolution.

A configuration holds genes, a list for each block of layers: `["Conv", filters, kernel, "ReLU"]`,
`["MaxPool", size]` (or AveragePool, Pool), and `["Dense", outputs, "ReLU"]` (or Sigmoid). Dense and
Sigmoid at the end are not among them: each network has these.
"""

from dataclasses import dataclass

import numpy as np

from cnnlab.network import Network
from cnnlab.training.search.protocol import Config

ACTIVATIONS = "ReLU", "Sigmoid"
CHOICES = {  # what each gene may hold after its kind
    "Conv": ((4, 6, 8, 12, 16), (3, 5), ACTIVATIONS),
    "MaxPool": ((2, 3, 4),),
    "AveragePool": ((2, 3, 4),),
    "Pool": ((2, 3, 4),),
    "Dense": ((16, 32, 64), ACTIVATIONS),
}
NAMES = {"Conv": ("filters", "kernel"), "Dense": ("outputs",)}  # the others have a size
ATTEMPTS = 1000


def network_of(genes: list, image_shape=(1, 28, 28), classes: int = 10) -> Network:
    """The network of these genes; ValueError if its layers do not fit each other."""
    layers = []
    for kind, *values in genes:
        names = NAMES.get(kind, ("size",))
        layers.append([kind, dict(zip(names, values, strict=False))])
        layers += [[activation, {}] for activation in values[len(names) :]]
    layers += [["Dense", {"outputs": classes}], ["Sigmoid", {}]]
    return Network.from_description({"image_shape": image_shape, "layers": layers})


@dataclass(frozen=True)
class Layers:
    """Networks of up to `blocks` genes, and of no more than `work` multiply-adds for an image.

    `common` is added to each configuration, such as the rate.
    """

    common: Config
    blocks: int = 5
    work: int = 400_000

    def draw(self, rng: np.random.Generator) -> Config:
        """A random network that fits."""
        return self.first_that_fits(
            lambda: [self.gene(rng) for _ in range(rng.integers(1, self.blocks + 1))]
        )

    def mutate(self, config: Config, rng: np.random.Generator) -> Config:
        """The network with one gene added, removed, or changed in one of its values."""
        old = config["genes"]
        return self.first_that_fits(lambda: self.mutated(old, rng), other_than=old)

    def gene(self, rng: np.random.Generator) -> list:
        """A random gene."""
        kind = str(rng.choice(list(CHOICES)))
        return [kind, *(pick(rng, choices) for choices in CHOICES[kind])]

    def mutated(self, old: list, rng: np.random.Generator) -> list:
        """A copy that differs, whether it fits or not."""
        genes, how = [list(gene) for gene in old], rng.integers(3)
        at = int(rng.integers(len(genes) + (how == 0)))
        if how == 0:
            genes.insert(at, self.gene(rng))
        elif how == 1:
            del genes[at]
        else:
            choices = CHOICES[genes[at][0]]
            k = int(rng.integers(len(choices)))
            genes[at][1 + k] = pick(rng, choices[k])
        return genes

    def first_that_fits(self, make, other_than: list | None = None) -> Config:
        """The first of `make()` that is a network, small enough, and not this one."""
        for _ in range(ATTEMPTS):
            genes = make()
            if genes != other_than and self.fits(genes):
                return self.common | {"genes": genes}
        raise ValueError(f"layers: expected one of {ATTEMPTS} draws to fit, got none: {self}")

    def fits(self, genes: list) -> bool:
        """Whether the genes are a network that is small enough, its dense layers at the end."""
        dense = [gene[0] == "Dense" for gene in genes]
        if not 1 <= len(genes) <= self.blocks or dense != sorted(dense):
            return False
        try:
            network = network_of(genes)
        except ValueError:
            return False
        return sum(network.multiply_adds.values()) <= self.work


def pick(rng: np.random.Generator, choices: tuple):
    """One of them, as it is: not as NumPy's kind of number."""
    return choices[int(rng.integers(len(choices)))]
