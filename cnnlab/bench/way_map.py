"""Which way to convolve is fastest where: each timed over the sizes of a layer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from cnnlab.bench import measure
from cnnlab.bench.way_work import inputs
from cnnlab.kernels.variants.four_ways import WAYS

EXACT_TILES = 8  # points of Winograd's transform: with more, float32 loses three digits and more


@dataclass(frozen=True)
class Layer:
    """A convolution: N images of H × H with C channels, F filters of K × K."""

    N: int = 8
    C: int = 16
    F: int = 16
    H: int = 28
    K: int = 5

    @property
    def multiply_adds(self) -> int:
        """Those of the direct way."""
        return self.N * self.F * self.C * (self.H - self.K + 1) ** 2 * self.K**2

    def __str__(self) -> str:
        return f"N={self.N}, C={self.C}, F={self.F}, H={self.H}, K={self.K}"


def kernels(K: int) -> dict[str, Callable]:
    """The ways for kernels of K × K, by name: Winograd with the largest tile of EXACT_TILES points.

    It is left out where that tile would be a single pixel.
    """
    found, m = {name: way.conv_forward for name, way in WAYS.items()}, EXACT_TILES + 1 - K
    if m < 2:
        return {name: kernel for name, kernel in found.items() if name != "Winograd"}
    return found | {"Winograd": partial(found["Winograd"], m=m)}


def timed(layer: Layer, repeats: int = 9) -> dict[str, measure.Timing]:
    """Times of the ways on a layer, on one core; each must first agree with `vector`."""
    *given, z = inputs(layer.N, layer.C, layer.F, layer.H, layer.H, layer.K)
    expected = np.empty_like(z)
    WAYS["vector"].conv_forward(*given, expected)
    ways = kernels(layer.K)

    def right(name: str) -> None:
        ways[name](*given, z)
        measure.same(z, expected, name=f"{name} at {layer}", rtol=1e-3)

    calls = {name: partial(kernel, *given, z) for name, kernel in ways.items()}
    work = 2 * layer.multiply_adds
    with threadpool_limits(1, user_api="blas"):  # NumPy's products take one core, too
        return measure.compare(calls, checks=right, repeats=repeats, work=work)


Panel = Mapping[tuple[int, int], Mapping[str, measure.Timing]]  # (row, column) → way → Timing
AXES = {  # panel → its rows and columns: the sizes that they change, and to what
    "channels and filters": ({"F": (1, 4, 16, 64)}, {"C": (1, 4, 16, 64)}),
    "kernel and channels": ({"K": (3, 5, 7, 9, 13)}, {"CF": (1, 4, 16, 64)}),
    "image and batch": ({"H": (8, 14, 20, 28)}, {"N": (1, 4, 16, 64)}),
}


def layers(rows: Mapping[str, Sequence[int]], columns: Mapping[str, Sequence[int]]) -> Iterator:
    """Yield (row, column), Layer for each pair of sizes; the others are those of `Layer`."""
    ((down, sizes),), ((across, others),) = rows.items(), columns.items()
    for i in sizes:
        for j in others:
            changed = dict.fromkeys(down, i) | dict.fromkeys(across, j)
            yield (i, j), replace(Layer(), **changed)


def sweep(axes=AXES, repeats: int = 9) -> dict[str, Panel]:
    """Times of the ways in every panel of a map."""
    return {
        title: {at: timed(layer, repeats) for at, layer in layers(*both)}
        for title, both in axes.items()
    }


def winner(timings: Mapping[str, measure.Timing]) -> tuple[str, bool]:
    """The fastest way, and whether it is faster than each other over the whole interval.

    The fastest is the one with the largest speedup over the first.
    """
    first = next(iter(timings.values()))
    best = max(timings, key=lambda name: measure.speedup(first, timings[name]).value)
    others = (t for name, t in timings.items() if name != best)
    return best, all(measure.ratio(t, timings[best]).low > 1 for t in others)
