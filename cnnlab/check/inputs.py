"""The inputs of a check: sizes that expose common mistakes, and arrays with guards around them."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cnnlab.kernels.contract import CONTRACT, STRIDES

GUARD = 64  # elements before and after each array, which a kernel may neither write nor use
POISON = np.nan  # fills outputs before the call: it shows gaps, and sums that do not start at zero


@dataclass(frozen=True)
class Case:
    """One set of sizes, named by what a kernel may overlook; `kind` says what numbers, see KINDS.

    Elementwise operations take the first of N, C, H and W: three of them, or `ndim`.
    """

    what: str
    sizes: dict[str, int] = field(hash=False)
    stride: int = 1
    kind: str = ""

    @property
    def all_sizes(self) -> dict[str, int]:
        """The sizes by letter, with P and Q, which follow from H, W, K and the stride."""
        sizes = {"D": 11, "O": 5, "ndim": 3} | self.sizes
        for inner, outer in (("H", "P"), ("W", "Q")):
            sizes[outer] = (sizes[inner] - sizes["K"]) // self.stride + 1
        return sizes

    def suited(self, operation: str) -> "Case":
        """The case for an operation: where windows are as large as their stride, both are K.

        They are as large as the stride of the case, if that is more than one.
        """
        if operation not in STRIDES or "K" in "".join(CONTRACT[operation].values()):
            return self
        size = self.sizes["K"] if self.stride == 1 else self.stride
        return replace(self, sizes=self.sizes | {"K": size}, stride=size)

    def shape(self, letters: str) -> tuple[int, ...]:
        """The shape of an argument of the contract."""
        sizes = self.all_sizes
        return tuple(sizes[i] for i in ("NCHW"[: sizes["ndim"]] if letters == "..." else letters))


def case(
    what: str, n: int, c: int, f: int, h: int, w: int, k: int,
    stride: int = 1, kind: str = "", **more: int,
) -> Case:  # fmt: skip
    """A Case from N, C, F, H, W, K and the stride, in this order; `more` sizes by name."""
    sizes = dict(zip("NCFHWK", (n, c, f, h, w, k), strict=True)) | more
    return Case(what, sizes, stride, kind)


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

# What a kernel in blocks of 4, 8, 12, 16, 32 or 64 may leave out: whole blocks, one more, one less.
SIZES = (8, 17, 24, 25, 33, 63, 64, 65, 67, 128, 131)
CASES += [
    each
    for size in SIZES
    for each in (
        case(f"{size} images", size, 1, 1, 3, 4, 2, D=3, O=2, ndim=1),
        case(f"{size} channels or inputs", 1, size, 1, 3, 4, 2, D=size, O=2, ndim=2),
        case(f"{size} filters or outputs", 1, 1, size, 3, 4, 2, D=3, O=size),
        case(f"{size} rows of results", 1, 1, 1, size + 1, 3, 2),
        case(f"{size} columns of results", 1, 1, 1, 3, size + 1, 2, ndim=4),
    )
]
CASES += [case(f"a kernel of {k}", 1, 1, 2, k + 1, k + 2, k) for k in (7, 8, 9, 16, 17)]
CASES += [case(f"{d} inputs", 2, 1, 1, 3, 3, 2, D=d, O=3) for d in (512, 513, 1025, 4099)]
CASES += [
    case("259 images, outputs or filters", 259, 1, 1, 2, 2, 2, D=2, O=259),
    case("the network's first and last layer", 18, 1, 6, 28, 28, 5, D=216, O=10),
    case("the network's pooling", 18, 6, 1, 24, 24, 4, 4),
    case("a second convolution, as in LeNet-5", 2, 6, 16, 12, 12, 5, D=784, O=33),
    case("a large kernel, and blocks left over everywhere", 2, 5, 9, 12, 28, 8, D=100, O=84),
    case("windows two apart, many of them", 3, 2, 2, 37, 43, 3, 2),
]

# What else may be in an array: see `numbers`.
KINDS = {
    "positive": "numbers that do not cancel",
    "large": "numbers beyond 1e12",
    "denormal": "denormal numbers",
    "extreme": "0, −0 and the ends of the range",
    "nan": "a NaN in each input",
}
CASES += [
    each
    for kind in KINDS
    for each in (
        case(KINDS[kind], 1, 1, 1, 3, 3, 2, D=3, O=2, kind=kind),
        case(KINDS[kind], 5, 3, 4, 8, 9, 3, D=19, O=6, kind=kind),
    )
]
STRIDE_ONE = [each for each in CASES if each.stride == 1]  # for kernels that take no stride
# For kernels that transform their inputs: the bits that denormal numbers lack are lost there, and
# what Winograd's products lose grows with the kernel.
TRANSFORMED = [e for e in STRIDE_ONE if e.kind != "denormal" and e.sizes["K"] <= 6]

# Enough work for threads to overlap: over many images, and within a single one.
CROWDS = [
    case("many images, more than one thread at work", 203, 1, 6, 28, 28, 5, D=216, O=10),
    case("one large image, more than one thread at work", 1, 3, 7, 90, 95, 5, D=5000, O=65),
]


def chosen(operation: str, cases: Sequence[Case]) -> list[Case]:
    """The cases that differ for an operation: in a size that it has, its stride, or the numbers."""
    result = {}
    for each in cases:
        if each.stride == 1 or operation in STRIDES:
            asked = each.suited(operation)
            shapes = tuple(map(asked.shape, CONTRACT[operation].values()))
            result.setdefault((shapes, asked.stride, each.kind), each)
    return list(result.values())


# --- fresh cases, for who grades ----------------------------------------------------------------

_generators: list[np.random.Generator] = []  # one for each `fresh_cases` block around


@contextlib.contextmanager
def fresh_cases(seed: int) -> Iterator[None]:
    """In the `with` block, checks try other shapes and numbers, which follow from `seed`."""
    _generators.append(np.random.default_rng(seed))
    try:
        yield
    finally:
        _generators.pop()


def generator() -> np.random.Generator:
    """Random numbers for a check: by chance, and in a `fresh_cases` block by its seed."""
    return _generators[-1] if _generators else np.random.default_rng()


def first_seed() -> int:
    """The first seed of a check that is the same each time: 0, another one in `fresh_cases`."""
    return int(generator().integers(1, 2**31)) if _generators else 0


def varied(cases: list[Case]) -> list[Case]:
    """The cases themselves; in `fresh_cases` up to three more of each size but the kernel's."""
    return [_enlarged(each) for each in cases] if _generators else cases


def _enlarged(case: Case) -> Case:
    fixed = "K", "ndim"
    more = {i: n if i in fixed else n + int(generator().integers(4)) for i, n in case.sizes.items()}
    return replace(case, what=f"{case.what}, or a little more", sizes=more)


def draw(operation: str, case: Case, dtype=np.float32, seed: int = 0) -> dict[str, np.ndarray]:
    """The arguments of an operation by name; the output is filled with POISON.

    `labels` are classes; for the others see `numbers`. Arrays of floats have guards.
    """
    rng, asked, arrays = np.random.default_rng(seed), case.suited(operation), {}
    for name, letters in CONTRACT[operation].items():
        shape = asked.shape(letters)
        if name == "labels":
            arrays[name] = rng.integers(0, asked.all_sizes["O"], shape)
        else:
            drawn = of_kind(case.kind, rng, operation, name, numbers(rng, operation, name, shape))
            arrays[name] = guarded(drawn.astype(dtype), POISON)
    output = list(arrays)[-1]
    arrays[output] = guarded(np.full_like(arrays[output], POISON), 7)
    return arrays


def numbers(rng: np.random.Generator, operation: str, name: str, shape: tuple) -> np.ndarray:
    """Random numbers in (−1, 1) for an argument, drawn so that a wrong answer shows."""
    if (operation, name) == ("relu_backward", "y"):
        return np.maximum(rng.uniform(-1, 1, shape), 0)
    if name == "y":  # of a sigmoid, away from 0 and 1
        return rng.uniform(0.02, 0.98, shape)
    if (operation, name) == ("sigmoid", "z"):  # half of them beyond what a short series reaches
        return rng.uniform(-1, 1, shape) * rng.choice([1, 20], shape)
    if name == "x" and operation.startswith("max_pool"):  # ties, and every second map negative
        below = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1, 1) % 2 * 16
        return rng.integers(-15, below, shape) / 16
    return rng.uniform(-1, 1, shape)


SCALES = {  # of the first input, of the others, and of a bias, which is added to their product
    "large": (2.0**40, 2.0**40, 2.0**80),
    "denormal": (2.0**-135, 2.0**100, 2.0**-35),
}
EXTREMES = {  # by operation, else by argument
    "z": [
        *(0, 1e-40, 17, 87, 88.5, 89, 104, 1e3, 3e38, np.inf),
        *(-0.0, -1e-40, -17, -87, -88.5, -89, -104, -1e3, -3e38, -np.inf),
    ],
    "y": [0, 1, 2.0**-24, 2.0**-25, 1 - 2.0**-24, 1e-30, 1e-40, 0.5],
    "relu_backward": [0, -0.0, 1e-40, 1e-30, 3e38, np.inf],
    "max_pool_forward": [0, -0.0, 3e38, -3e38, np.inf, -np.inf],
    "max_pool_backward": [0, -0.0, 3e38, -3e38, np.inf, -np.inf],
}


def of_kind(kind: str, rng, operation: str, name: str, drawn: np.ndarray) -> np.ndarray:
    """The numbers drawn for an argument, made into those of a kind; see KINDS."""
    first = name == next(iter(CONTRACT[operation]))
    if kind == "positive":
        return abs(drawn)
    if kind in SCALES and name != "y":
        return drawn * SCALES[kind][0 if first else 2 if name == "b" else 1]
    if kind == "extreme":
        ends = (EXTREMES.get(operation) or EXTREMES.get(name)) if first else None
        return rng.permutation(np.resize(ends or [0, -0.0, 1, -1], drawn.size)).reshape(drawn.shape)
    if kind == "nan":
        drawn.reshape(-1)[rng.integers(drawn.size)] = np.nan
        if first and operation.startswith("max_pool"):  # the first of a window, then numbers
            drawn.reshape(-1)[0] = np.nan
    return drawn


def guarded(array: np.ndarray, guard: float) -> np.ndarray:
    """A copy of an array with GUARD elements of value `guard` before and after it in memory."""
    around = np.full(array.size + 2 * GUARD, guard, array.dtype)
    around[GUARD:-GUARD] = array.ravel()
    return around[GUARD:-GUARD].reshape(array.shape)
