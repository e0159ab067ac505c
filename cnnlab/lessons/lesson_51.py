"""The exercises of lesson 51."""

import itertools
import math

import numpy as np
import scipy.optimize

from cnnlab.check.exercises import kinds
from cnnlab.kernels import reference

TABLES = 40  # random ones that a planner is tried on


@kinds.formula(
    lambda rng: {
        "n_images": int(rng.integers(1, 65)),
        "channels": int(rng.integers(1, 65)),
        "kernel": int(rng.integers(2, 8)),
        "height": int(rng.integers(8, 40)),
    },
    "A column for each result pixel of each image; how long is it?",
    "A map of results has (height − kernel + 1)² pixels, and a float32 four bytes.",
)
def bytes_of_columns(n_images, channels, kernel, height):
    """A window of C K² numbers for each of P² pixels of each image, four bytes a number."""
    pixels = (height - kernel + 1) ** 2
    return 4 * n_images * pixels * channels * kernel**2


def draw_cap(rng):
    """A cap, every other one too small even for the weights."""
    always, each = int(rng.integers(1000, 10**6)), int(rng.integers(1000, 10**5))
    return {"cap": int(rng.integers(0, 2 * always)), "always": always, "each": each}


@kinds.formula(
    draw_cap,
    "What is left of the cap for images, once the weights are transformed?",
    "A micro-batch has a whole number of images: round down. There may be no room for any.",
)
def images_under(cap, always, each):
    """The weights come first, whatever the micro-batch; what is left, if any, is for images."""
    return max(0, (cap - always) // each)


def draw_tables(rng):
    """Times and workspaces of two ways, by size; a batch; and a cap that leaves some out."""
    sizes = sorted(rng.choice(np.arange(1, 8), 4, replace=False).tolist())
    times = {a: {m: float(rng.integers(1, 30)) for m in sizes} for a in ("im2col", "FFT")}
    workspaces = {a: {m: int(rng.integers(1, 10)) for m in sizes} for a in times}
    return times, workspaces, int(rng.integers(1, 16)), int(rng.integers(1, 10))


def try_planner(mine):
    """What is wrong with a function that finds the least seconds, on random tables."""
    rng = np.random.default_rng()
    for _ in range(TABLES):
        given = draw_tables(rng)
        got, least = mine(*given), planned(*given)
        if got != least and not math.isclose(got, least):
            times, workspaces, n_images, cap = given
            return (
                f"expected {least:g} seconds for {n_images} images under a cap of {cap}, "
                f"got {got!r}, with times {times} and workspaces {workspaces}"
            )
    return ""


def planned(times, workspaces, n_images, cap):
    """The least seconds, or infinity, by an integer programme: how many micro-batches of each."""
    fits = [(m, t) for a in times for m, t in times[a].items() if workspaces[a][m] <= cap]
    if not fits:
        return math.inf
    sizes, seconds = zip(*fits, strict=True)
    all_images = scipy.optimize.LinearConstraint([sizes], n_images, n_images)
    found = scipy.optimize.milp(
        seconds,
        constraints=all_images,
        integrality=np.ones(len(sizes)),
        options={"presolve": False},  # with it, HiGHS 1.12 prints a line of its own
    )
    return found.fun if found.success else math.inf


@kinds.tested(
    try_planner,
    "T(0) = 0, and T(n) is the least of T(n − m) + t(a, m) over all ways a and sizes m that fit.",
    "The cap holds for each micro-batch by itself: they run one after the other. Where nothing "
    "fits, T(n) is math.inf, and infinity plus something stays that.",
)
def recurrence(times, workspaces, n_images, cap):
    """One micro-batch is the last, and what comes before it is as good as can be."""
    least = [0.0] + [math.inf] * n_images
    for n in range(1, n_images + 1):
        for name, by_size in times.items():
            for size, seconds in by_size.items():
                if size <= n and workspaces[name][size] <= cap:
                    least[n] = min(least[n], least[n - size] + seconds)
    return least[n_images]


def greedy(times, n_images):
    """The seconds if the size with the least time per image is taken while it fits; or infinity."""
    seconds = 0.0
    for size in sorted(times, key=lambda size: times[size] / size):
        seconds += n_images // size * times[size]
        n_images %= size
    return math.inf if n_images else seconds


def try_example(answer):
    """What is wrong with times and a batch on which the greedy planner should fail."""
    times, n_images = answer()
    sizes = all(isinstance(size, int) and size > 0 for size in times)
    if not sizes or not all(0 < seconds < math.inf for seconds in times.values()):
        return f"expected positive seconds by positive whole sizes, got {times!r}"
    taken = greedy(times, n_images)
    least = planned({"": times}, {"": dict.fromkeys(times, 0)}, n_images, 0)
    if taken == math.inf:
        return f"expected sizes with which the greedy planner ends, got {times!r}: images are left"
    if math.isclose(taken, least):
        return f"the greedy planner finds {taken:g} seconds, and no plan takes less"
    return ""


@kinds.tested(
    try_example,
    "Which micro-batches does greed leave for the last images? Make those slow.",
    "Two sizes and 1: the best per image does not divide the batch, but the other does.",
)
def against_greed():
    """Greed takes 4 and is left with 1 + 1, at 3 + 2 + 2; two micro-batches of 3 take 6."""
    return {1: 2.0, 3: 3.0, 4: 3.0}, 6


def try_pieces(mine):
    """What is wrong with a gradient of the weights in micro-batches."""
    rng = np.random.default_rng()
    for n_images, most in itertools.product((1, 4, 7), (1, 3, 4, 9)):
        x, dz = (rng.standard_normal((n_images, 2, side, side)) for side in (6, 4))
        seen, exact, dw = [], np.empty((2, 2, 3, 3)), np.full((2, 2, 3, 3), np.nan)
        reference.conv_backward_weights(x, dz, exact)

        def kernel(x, dz, dw, seen=seen):
            seen.append(len(x))
            reference.conv_backward_weights(x, dz, dw)

        mine(kernel, x, dz, dw, most)
        at = f"for {n_images} images in micro-batches of at most {most}"
        if max(seen, default=0) > most:
            return f"a micro-batch of {max(seen)} images {at}"
        if not np.allclose(dw, exact):
            return f"a wrong gradient {at}, from micro-batches of {seen}"
    return ""


@kinds.tested(
    try_pieces,
    "The kernel writes over its output. Where do the sums of earlier micro-batches stay?",
    "The gradient is a sum over the images, not a mean; and the last micro-batch may be smaller.",
)
def gradient_in_pieces(kernel, x, dz, dw, most):
    """Each micro-batch gives its part of the sum; a slice takes care of the last, smaller one."""
    part = np.empty_like(dw)
    dw[:] = 0
    for first in range(0, len(x), most):
        kernel(x[first : first + most], dz[first : first + most], part)
        dw += part
