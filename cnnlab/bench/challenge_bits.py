"""The challenge of few bits: a compressor that trains as well as float32, in the fewest bits."""

from collections.abc import Callable

import numpy as np

from cnnlab.bench.bits import accuracies

N = 1000  # numbers of a message that is looked at


def told(mine: Callable) -> str:
    """What is wrong with a compressor's messages, in words; nothing if they can be sent."""
    values = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    sender, reader, out = mine(N, 1), mine(N, 2), np.empty(N, np.float32)
    message = np.asarray(sender.encode(values))
    if message.dtype != np.uint8 or message.shape != (sender.n_bytes,):
        return f"message: expected uint8 ({sender.n_bytes},), got {message.dtype} {message.shape}"
    reader.decode(message.copy(), out)
    if not np.isfinite(out).all():
        return "decode: expected finite numbers, some are not, or were never written"
    again = np.empty_like(out)
    sender.decode(message, again)
    if not np.array_equal(out, again):
        return "decode: a rank that has not encoded the message reads other numbers from it"
    return ""


def challenge_bits(mine: Callable, data, goal: float, best: float) -> float | None:
    """Train with a compressor and say how many bits a number it sends; `best` is to be beaten.

    `mine(n, seed)` makes one, with the interface of `Compressor`; ... is not yet one. `goal` is a
    test accuracy, the mean of two seeds. Returns the bits, None where the goal was missed.
    """
    if not callable(mine):
        print("challenge: not yet answered")
        return None
    if wrong := told(mine):
        print(f"✗ {wrong}")
        return None
    bits, ends = accuracies({"mine": mine}, data)["mine"]
    reached = float(np.mean(ends))
    if reached < goal:
        print(f"✗ {bits:.2f} bits a number and {reached:.1%}; the goal is {goal:.1%}")
        return None
    side = "fewer than" if bits < best else "not fewer than"
    print(f"✓ {bits:.2f} bits a number and {reached:.1%}: {side} {best:.2f}")
    return bits
