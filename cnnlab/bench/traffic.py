"""A challenge in CUDA C: the bytes that a learner's kernel moves, beside those of the lesson's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cnnlab import cuda
from cnnlab.bench.challenge import MINE, takes_stride
from cnnlab.bench.operations import checked, layer_arguments
from cnnlab.check import device
from cnnlab.check.exercises.kinds import empty
from cnnlab.check.verdict import Verdict


@dataclass(frozen=True)
class Traffic:
    """Bytes between global memory and the processor, as if nothing were cached, by kernel.

    `least` is what any kernel moves: each array once.
    """

    operation: str
    moved: dict[str, int]
    least: int

    def __str__(self) -> str:
        times = {name: f"{moved / self.least:.3g}" for name, moved in self.moved.items()}
        mine = times.pop(MINE)
        others = "".join(f", {name} {times[name]}" for name in times)
        return f"Your {self.operation} moves {mine} times the least bytes{others}."


def challenge(
    operation: str, mine: Callable, rungs: Mapping[str, Callable] | None = None, *, batch: int = 1
) -> Traffic | None:
    """Prove a function that launches kernels, then count the bytes that it and the rungs move.

    The emulator counts, at the network's sizes, and finds the same on every machine. Prints the
    verdict first; returns None, and counts nothing, where the kernel is wrong.
    """
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not device.exercise(operation, mine):
        return None
    return count(operation, {**(rungs or {}), MINE: mine}, batch)


def count(operation: str, functions: Mapping[str, Callable], batch: int = 1) -> Traffic:
    """The bytes that functions which launch kernels move, each checked against the reference."""
    arrays, options = layer_arguments(operation, batch)
    moved = {}
    for name, function in functions.items():
        with cuda.traced() as traces:
            checked(operation, name, function, arrays, options if takes_stride(function) else ())
        moved[name] = sum(trace.moved() for trace in traces)
    return Traffic(operation, moved, sum(array.nbytes for array in arrays))
