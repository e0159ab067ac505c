"""Spaces of hyperparameters: a range for each, mostly on a logarithmic scale."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cnnlab.training.search.protocol import Config


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; with `log`, factors count and not differences.

    With `whole`, they are rounded. Raises ValueError unless low < high, and 0 < low with `log`.
    """

    low: float
    high: float
    log: bool = True
    whole: bool = False

    def __post_init__(self):
        if not self.low < self.high or (self.log and self.low <= 0):
            order = "0 < low < high" if self.log else "low < high"
            raise ValueError(f"range: expected {order}, got {self.low} and {self.high}")

    def at(self, place: float) -> float:
        """The number at a place from 0 (low) to 1 (high)."""
        if self.log:
            value = self.low * (self.high / self.low) ** place
        else:
            value = self.low + (self.high - self.low) * place
        return self.within(value)

    def within(self, value: float) -> float:
        """The value, or the end of the range that it lies beyond; rounded if it is to be whole."""
        value = min(max(float(value), self.low), self.high)
        return round(value) if self.whole else value


class Space(dict):
    """A Range for each hyperparameter, by name: `Space(rate=Range(0.01, 1))`."""

    def __init__(self, ranges: Mapping[str, Range] = {}, **more: Range):
        super().__init__(ranges, **more)

    def at(self, places: np.ndarray) -> Config:
        """The configuration at a point of the unit cube, with an axis for each hyperparameter."""
        return {name: of.at(x) for (name, of), x in zip(self.items(), places, strict=True)}

    def draw(self, rng: np.random.Generator) -> Config:
        """A configuration, each place of the cube as likely as any other."""
        return self.at(rng.random(len(self)))

    def perturb(self, config: Config, rng: np.random.Generator) -> Config:
        """Each number times 0.8 or 1.2, as luck decides, within its range."""
        factors = rng.choice([0.8, 1.2], len(self))
        return {
            name: of.within(config[name] * by)
            for (name, of), by in zip(self.items(), factors, strict=True)
        }
