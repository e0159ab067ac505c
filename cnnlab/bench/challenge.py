"""A challenge: a learner's kernel beside a lesson's rungs, `vector`, and the machine's roof."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cnnlab.bench import machine, measure
from cnnlab.bench.operations import checked, layer_arguments, layer_call
from cnnlab.check import exercise, threaded
from cnnlab.check.exercises.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.network import Network
from cnnlab.runtime import thread_pool

MINE, GOAL = "mine", "vector"


@dataclass(frozen=True)
class Challenge:
    """Times of an operation on one batch: the rungs, `vector` and "mine"; and the least possible.

    `floor` is in seconds: no program on `n_threads` cores is faster, as its multiply-adds take that
    long at their peak, or its arrays at the memory's bandwidth where no cache holds them; None for
    an operation without multiply-adds.
    """

    operation: str
    timings: dict[str, measure.Timing]
    floor: float | None
    n_threads: int

    @property
    def of_goal(self) -> float:
        """The speed reached, as a share of that of `vector`."""
        return measure.ratio(self.timings[GOAL], self.timings[MINE]).value

    @property
    def of_roof(self) -> float | None:
        """The speed reached, as a share of the greatest possible."""
        return self.floor and self.floor / self.timings[MINE].median

    def __str__(self) -> str:
        cores = "one core" if self.n_threads == 1 else f"{self.n_threads} cores"
        roof = f", and {self.of_roof:.0%} of the roof of {cores}" if self.floor else ""
        return f"Your {self.operation} reaches {self.of_goal:.0%} of the speed of {GOAL}{roof}."


def challenge(
    operation: str,
    mine: Callable,
    rungs: Mapping[str, Callable] | None = None,
    *,
    n_threads: int = 1,
    batch: int = 64,
    repeats: int = 9,
) -> Challenge | None:
    """Prove a kernel, then time it in turn with `vector` and the rungs, at the network's sizes.

    Prints the verdict first. On more than one thread the kernel must be parallel, and is looked at
    for races. Returns None, and times nothing, where the kernel is wrong or still empty. Nothing is
    asserted about time. Raises ValueError for an operation that the network does not have.
    """
    arrays, options = layer_arguments(operation, batch)
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not (exercise if n_threads == 1 else threaded)(operation, mine):
        return None
    calls = {GOAL: layer_call(GOAL, operation, batch)}
    for name, kernel in {**(rungs or {}), MINE: mine}.items():
        given = options if takes_stride(kernel) else ()
        checked(operation, name, kernel, arrays, given)
        calls[name] = lambda kernel=kernel, given=given: kernel(*arrays, *given)
    order = [*(rungs or {}), GOAL, MINE]
    with thread_pool.threads(n_threads):
        timings = measure.compare({name: calls[name] for name in order}, repeats=repeats)
    moved = sum(array.nbytes for array in arrays)
    return Challenge(operation, timings, floor(operation, batch, moved, n_threads), n_threads)


def takes_stride(kernel: Callable) -> bool:
    """Whether a kernel has an argument for the stride."""
    return "stride" in inspect.signature(getattr(kernel, "py_func", kernel)).parameters


def floor(operation: str, batch: int, moved: int, n_threads: int) -> float | None:
    """The least seconds in which cores can do an operation that moves so many bytes; see above."""
    work = Network().multiply_adds
    work["conv_backward_input"] = work["conv_forward"]  # no step needs it, but it is as large
    if operation not in work:
        return None
    seconds = 2 * work[operation] * batch / (machine.float32_peak() * n_threads)
    largest = max((machine.describe()["caches"] or {"none": 0}).values())
    return seconds if moved <= largest else max(seconds, moved / machine.memory_bandwidth())
