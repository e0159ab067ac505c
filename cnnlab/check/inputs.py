"""The inputs of a check: sizes that expose common mistakes, and arrays with guards around them."""

from dataclasses import dataclass, field, replace

import numpy as np

from cnnlab.kernels.contract import CONTRACT, STRIDES

GUARD = 64  # elements before and after each array, which a kernel may neither write nor use
POISON = np.nan  # fills outputs before the call: it shows gaps, and sums that do not start at zero


@dataclass(frozen=True)
class Case:
    """One set of sizes, named by what a kernel may overlook."""

    what: str
    sizes: dict[str, int] = field(hash=False)
    stride: int = 1

    @property
    def all_sizes(self) -> dict[str, int]:
        """The sizes by letter, with P and Q, which follow from H, W, K and the stride."""
        sizes = {"D": 11, "O": 5} | self.sizes
        for inner, outer in (("H", "P"), ("W", "Q")):
            sizes[outer] = (sizes[inner] - sizes["K"]) // self.stride + 1
        return sizes

    def of(self, operation: str) -> "Case":
        """The case for an operation: where windows are as large as their stride, both are K.

        They are as large as the stride of the case, if that is more than one.
        """
        if operation not in STRIDES or "K" in "".join(CONTRACT[operation].values()):
            return self
        size = self.sizes["K"] if self.stride == 1 else self.stride
        return replace(self, sizes=self.sizes | {"K": size}, stride=size)


def case(
    what: str, n: int, c: int, f: int, h: int, w: int, k: int, stride: int = 1, **more: int
) -> Case:
    """A Case from N, C, F, H, W, K and the stride, in this order; `more` sizes by name."""
    return Case(what, dict(zip("NCFHWK", (n, c, f, h, w, k), strict=True)) | more, stride)


# From plain to awkward: the first case that fails names what a kernel overlooked.
CASES = [
    case("one square image", 1, 1, 1, 6, 6, 3, D=4, O=1),
    case("one square image, several channels and filters", 1, 2, 3, 6, 6, 3),
    case("several images", 3, 2, 4, 6, 6, 3),
    case("images wider than high", 2, 3, 2, 5, 11, 3, D=40, O=3),
    case("images higher than wide", 2, 2, 5, 13, 7, 5, D=3, O=17),
    case("a kernel of one", 2, 3, 2, 4, 5, 1),
    case("a kernel as large as the image", 2, 1, 3, 5, 5, 5, D=216, O=10),
    case("windows two apart, a row or a column left over", 2, 2, 3, 9, 8, 3, 2),
    case("windows three apart, pixels that none of them reads", 2, 3, 2, 11, 13, 2, 3),
    case("windows four apart, as in the network", 3, 6, 2, 12, 16, 4, 4),
    case("a batch and a kernel that nothing divides", 17, 1, 7, 13, 12, 6, D=23, O=11),
]
STRIDE_ONE = [each for each in CASES if each.stride == 1]  # for kernels that take no stride

# Enough work for threads to overlap: over many images, and within a single one.
CROWDS = [
    case("many images, more than one thread at work", 203, 1, 6, 28, 28, 5, D=216, O=10),
    case("one large image, more than one thread at work", 1, 3, 7, 90, 95, 5, D=5000, O=65),
]


def draw(operation: str, case: Case, dtype=np.float32, seed: int = 0) -> dict[str, np.ndarray]:
    """The arguments of an operation by name: inputs in (−1, 1), the output filled with POISON.

    `labels` are classes; for the others see `numbers`. Arrays of floats have guards.
    """
    rng = np.random.default_rng(seed)
    sizes = case.of(operation).all_sizes
    arrays = {}
    for name, letters in CONTRACT[operation].items():
        shape = (
            (sizes["N"], sizes["C"], sizes["H"])
            if letters == "..."
            else tuple(sizes[i] for i in letters)
        )
        if name == "labels":
            arrays[name] = rng.integers(0, sizes["O"], shape)
        else:
            arrays[name] = guarded(numbers(rng, operation, name, shape).astype(dtype), POISON)
    output = list(arrays)[-1]
    arrays[output] = guarded(np.full_like(arrays[output], POISON), 7)
    return arrays


def numbers(rng: np.random.Generator, operation: str, name: str, shape: tuple) -> np.ndarray:
    """Random numbers in (−1, 1) for an argument, drawn so that a wrong answer shows."""
    if (operation, name) == ("relu_backward", "y"):
        return np.maximum(rng.uniform(-1, 1, shape), 0)
    if name == "y":  # of a sigmoid, away from 0 and 1
        return rng.uniform(0.02, 0.98, shape)
    if name == "x" and operation.startswith("max_pool"):  # ties, and every second map negative
        below = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1, 1) % 2 * 16
        return rng.integers(-15, below, shape) / 16
    return rng.uniform(-1, 1, shape)


def guarded(array: np.ndarray, guard: float) -> np.ndarray:
    """A copy of an array with GUARD elements of value `guard` before and after it in memory."""
    around = np.full(array.size + 2 * GUARD, guard, array.dtype)
    around[GUARD:-GUARD] = array.ravel()
    return around[GUARD:-GUARD].reshape(array.shape)
