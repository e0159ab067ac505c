"""The challenge of few numbers: train as well as with all of them, with the fewest bytes."""

from collections.abc import Callable

import numpy as np

from cnnlab.bench.streams import learnt

N = 1000  # numbers of a gradient that is looked at


def told(mine: Callable) -> str:
    """What is wrong with what a chooser sends, in words; nothing if it can be added up."""
    gradient = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    places, values = mine(N, 0).choose(gradient.copy(), 1, 1)
    if places.dtype != np.int32 or values.dtype != np.float32 or places.shape != values.shape:
        got = f"{places.dtype} {places.shape} and {values.dtype} {values.shape}"
        return f"choose: expected places int32 (k) and values float32 (k), got {got}"
    if places.size and (np.any(np.diff(places) <= 0) or places[0] < 0 or places[-1] >= N):
        return f"choose: expected places ascending, each once, from 0 to {N - 1}"
    return ""


def challenge_streams(
    mine: Callable, rate: float, data, goal: float, fewest: int, **plan
) -> int | None:
    """Train with a way to choose and say how many bytes all ranks send; `fewest` is to be beaten.

    `mine(n, seed)` makes one with the interface of `Streams`; ... is not yet one. `goal` is a test
    accuracy. Returns the bytes, None where the goal was missed.
    """
    if not callable(mine):
        print("challenge: not yet answered")
        return None
    if wrong := told(mine):
        print(f"✗ {wrong}")
        return None
    reached, n_bytes = learnt(mine, data, rate, **plan)
    if reached < goal:
        print(f"✗ {reached:.1%} with {n_bytes / 1e6:.2f} MB; the goal is {goal:.1%}")
        return None
    ratio = fewest / n_bytes
    print(f"✓ {reached:.1%} with {n_bytes / 1e6:.2f} MB: {ratio:.2f} times fewer than the lesson")
    return n_bytes
