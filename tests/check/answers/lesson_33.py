"""Answers to the exercises of lesson 33, right and wrong."""

from cnnlab.lessons.lesson_33 import binds, challenge_backward, convolve, path
from tests.check.changed import changed


def from_the_end(seconds, needs):
    """Another way: the longest path that begins at each launch, from the last one back."""
    rest = {}
    for k in reversed(range(len(seconds))):
        after = [rest[j] for j in range(k + 1, len(seconds)) if k in needs[j]]
        rest[k] = [k, *max(after, key=lambda p: sum(seconds[i] for i in p), default=[])]
    return max(rest.values(), key=lambda p: sum(seconds[i] for i in p))


def most_launches(seconds, needs):
    """The path with the most launches, not the longest in seconds."""
    return from_the_end([1] * len(seconds), needs)


def to_the_last(seconds, needs):
    """A path that ends with the last launch, whether it ends last or not."""
    path = [len(seconds) - 1]
    while needs[path[0]]:
        path.insert(0, max(needs[path[0]], key=lambda i: seconds[i]))
    return path


RIGHT = [
    (binds, ["launches", "DRAM", "requests", "chain", "clock"]),
    (path, from_the_end),
    (convolve, changed(convolve, ("weight * patch[p + k][q + l]", "patch[p + k][q + l] * weight"))),
    (challenge_backward, changed(challenge_backward, ("i < weights + O)", "i < O * D + O)"))),
]
WRONG = [
    (binds, ["launches", "requests", "DRAM", "chain", "clock"], "what differs?"),
    (binds, ["launches", "DRAM", "requests", "requests", "clock"], "what waits?"),
    (binds, ["clock", "DRAM", "requests", "chain", "clock"], "what is the same?"),
    (path, most_launches, "takes"),
    (path, to_the_last, "takes"),
    (path, lambda seconds, needs: list(range(len(seconds))), "does not need the one before it"),
    (path, lambda seconds, needs: from_the_end(seconds, needs)[::-1], "does not need"),
    (path, lambda seconds, needs: max(seconds), "raised TypeError"),
    (convolve, changed(convolve, ("if (i >= N * F * P * Q) return;", "")), "out of bounds"),
    (convolve, changed(convolve, ("= bias", "= 0")), "y["),
    (convolve, changed(convolve, ("= bias", "= b[f]")), "45,360 loads, where 38,880 do"),
    (convolve, changed(convolve, ("weight * patch", "w[f * 25 + k * K + l] * patch")), "loads,"),
    (convolve, changed(convolve, ("i % Q * S", "i % Q")), "y"),
    (challenge_backward, changed(challenge_backward, ("dw[i] = sum", "dw[i] += sum")), "dw"),
    (challenge_backward, changed(challenge_backward, ("- weights - O;", "- weights;")), "out of"),
    (challenge_backward, changed(challenge_backward, ("if (i < weights + O + N * D)", "")), "out"),
    (challenge_backward, changed(challenge_backward, ("j / D * O + o] * w", "o] * w")), "dx"),
    (challenge_backward, changed(challenge_backward, ("n < N", "n < 1")), "dw["),
]  # fmt: skip
