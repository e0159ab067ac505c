"""What a convolution costs each way: seconds and bytes of workspace, over micro-batches."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cnnlab.bench import measure
from cnnlab.bench.microbatches import Piece, Plan, front
from cnnlab.kernels import CONTRACT
from cnnlab.kernels.variants.four_ways import WAYS, Way
from cnnlab.network import Network, Place

SEVERAL = 16  # images in a sample, or more


@dataclass(frozen=True)
class Costs:
    """The costs of one operation of a layer: way → images in a micro-batch → cost."""

    timings: Mapping[str, Mapping[int, measure.Timing]]
    workspaces: Mapping[str, Mapping[int, int]]  # bytes

    @property
    def times(self) -> dict[str, dict[int, float]]:
        """Median seconds of a call."""
        return {
            name: {size: timing.median for size, timing in by_size.items()}
            for name, by_size in self.timings.items()
        }

    @property
    def n_images(self) -> int:
        """The images of the largest micro-batch: the whole batch."""
        return max(size for by_size in self.timings.values() for size in by_size)

    @property
    def whole(self) -> dict[str, Plan]:
        """The plans that take the whole batch at once, one for each way."""
        n = self.n_images
        return {
            name: Plan((Piece(name, n),), by_size[n], self.workspaces[name][n])
            for name, by_size in self.times.items()
        }

    @property
    def front(self) -> list[Plan]:
        """The plans for the whole batch that are worth having, see `microbatches.front`."""
        return front(self.times, self.workspaces, self.n_images)


def costs(
    operation: str,
    place: Place,
    sizes: Sequence[int],
    *,
    ways: Mapping[str, Way] = WAYS,
    repeats: int = 9,
) -> Costs:
    """Time every way on micro-batches of a layer; each result is compared with the first way's.

    A sample takes several micro-batches, one after the other as in a plan, and is the time of one.
    Where results add up over micro-batches, as gradients of the weights do, a micro-batch smaller
    than the largest counts an array more, for the sum.
    """
    arrays, first = arguments(operation, place, max(sizes)), next(iter(ways))
    calls, counts, bytes_of = {}, {}, {}
    for size in sizes:
        counts[size] = max(1, min(SEVERAL, max(sizes)) // size)
        given = first_images(operation, arrays, slice(counts[size] * size))
        expected = np.empty_like(given[-1])
        getattr(ways[first], operation)(*given[:-1], expected)
        for name, way in ways.items():
            pieces = Plan((Piece(name, size),) * counts[size], 0, 0)
            call = functools.partial(in_micro_batches, operation, pieces, *given, ways=ways)
            given[-1][:] = np.nan
            call()
            measure.same(given[-1], expected, name=f"{operation} by {name}", rtol=1e-3)
            for_sum = given[-1].nbytes if adds_up(operation) and size < max(sizes) else 0
            bytes_of[name, size] = way.workspace(operation, *letters(place, size)) + for_sum
            calls[name, size] = call
    found = {
        (name, size): measure.Timing(name, tuple(s / counts[size] for s in timing.samples))
        for (name, size), timing in measure.compare(calls, repeats=repeats).items()
    }
    return Costs(
        {name: {size: found[name, size] for size in sizes} for name in ways},
        {name: {size: bytes_of[name, size] for size in sizes} for name in ways},
    )


def of_a_step(network: Network) -> dict[str, tuple[str, Place]]:
    """The convolutions of a training step: "conv2_forward" → ("conv_forward", its place).

    The first layer's gradient with respect to its input is none of these.
    """
    names = [name for name in network.multiply_adds if name.startswith("conv")]
    parts = {name: name.partition("_") for name in names}
    return {name: (f"conv_{what}", network[at]) for name, (at, _, what) in parts.items()}


def step_call(network: Network, plans: Mapping[str, Plan]) -> Callable[[], None]:
    """A call that computes all convolutions of a step on random arrays, each as its plan says."""
    calls = []
    for name, (operation, place) in of_a_step(network).items():
        n_images = sum(piece.n_images for piece in plans[name].pieces)
        arrays = arguments(operation, place, n_images)
        calls.append(functools.partial(in_micro_batches, operation, plans[name], *arrays))

    def step() -> None:
        for call in calls:
            call()

    return step


def letters(place: Place, n_images: int) -> tuple[int, ...]:
    """N, C, F, H, W and K of a convolutional layer and a batch."""
    return (
        n_images,
        place.input_shape[0],
        place.shape[0],
        *place.input_shape[1:],
        place.layer.kernel,
    )


def arguments(operation: str, place: Place, n_images: int) -> list[np.ndarray]:
    """Random float32 arrays for an operation of a convolutional layer; the output is the last."""
    shapes = place.layer.parameter_shapes(place.input_shape)
    shapes |= {"x": (n_images, *place.input_shape), "z": (n_images, *place.shape)}
    rng = np.random.default_rng(0)
    return [
        rng.uniform(-1, 1, shapes[name.removeprefix("d")]).astype(np.float32)
        for name in CONTRACT[operation]
    ]


def first_images(operation: str, arrays: Sequence, images: slice) -> list[np.ndarray]:
    """The arguments of an operation for some images: an array of no images stays whole."""
    shapes = CONTRACT[operation].values()
    return [a[images] if of[0] == "N" else a for a, of in zip(arrays, shapes, strict=True)]


def adds_up(operation: str) -> bool:
    """Whether an operation sums over the images, so that what micro-batches give adds up."""
    return "N" not in list(CONTRACT[operation].values())[-1]


def in_micro_batches(operation: str, plan: Plan, *arrays: np.ndarray, ways=WAYS) -> None:
    """Compute an operation of the contract as a plan says, one micro-batch after the other."""
    output, first = arrays[-1], 0
    cut = len(plan.pieces) > 1
    total = np.zeros_like(output) if cut and adds_up(operation) else None
    for name, size in plan.pieces:
        part = first_images(operation, arrays, slice(first, first + size))
        getattr(ways[name], operation)(*part)
        if total is not None:  # a gradient of the weights is a sum over all images
            total += output
        first += size
    if total is not None:
        output[:] = total
