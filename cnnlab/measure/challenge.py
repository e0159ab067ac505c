"""A challenge: a learner's kernel beside a lesson's rungs, `vector`, and the machine's roof."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cnnlab import cuda
from cnnlab.check import collective, device, exercise, threaded
from cnnlab.check.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.measure import machine, timing
from cnnlab.measure.bench import checked, layer_arguments, layer_call
from cnnlab.measure.timing import Timing
from cnnlab.network import Network
from cnnlab.ranks import measure
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool
from cnnlab.runtime.failures import few

MINE, GOAL = "mine", "vector"


@dataclass(frozen=True)
class Challenge:
    """Times of an operation on one batch: the rungs, `vector` and "mine"; and the least possible.

    `floor` is in seconds: no program on `n_threads` cores is faster, as its multiply-adds take that
    long at their peak, or its arrays at the memory's bandwidth where no cache holds them; None for
    an operation without multiply-adds.
    """

    operation: str
    timings: dict[str, timing.Timing]
    floor: float | None
    n_threads: int

    @property
    def of_goal(self) -> float:
        """The speed reached, as a share of that of `vector`."""
        return timing.ratio(self.timings[GOAL], self.timings[MINE]).value

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
        timings = timing.compare({name: calls[name] for name in order}, repeats=repeats)
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


# --- a challenge on ranks -------------------------------------------------------------------------

MPI = "MPI"  # the collective of the library


def challenge_ranks(
    operation: str,
    mine: Callable,
    rungs: Mapping[str, Callable] | None = None,
    *,
    n: int = 100_000,
    n_ranks: int | None = None,
    repeats: int = 11,
) -> dict[str, Timing] | None:
    """Prove a collective on 1 to 5 ranks, then time it in turn with the rungs and MPI's own.

    `mine` and the `rungs` take (comm, array), see `check.collective`; `n` is the number of float32
    on each of `n_ranks`, by default one for each core, from 2 to 8. Prints the verdict. Returns
    None, and times nothing, where `mine` is wrong or still empty.
    """
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not collective.collective(operation, mine):
        return None
    calls = {**(rungs or {}), MPI: None, MINE: mine}
    with cluster(n_ranks or max(2, min(8, thread_pool.usable_cores()))) as ranks:
        samples = ranks.run(measure.race, operation, calls, n, repeats)[0]
    return {name: Timing(name, tuple(samples[name])) for name in calls}


# --- a challenge in CUDA C ------------------------------------------------------------------------


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


def challenge_traffic(
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


# --- times of kernels on arrays that stay on the GPU, taken by the GPU's own events ---------------


def event_times(
    operation: str, functions: Mapping[str, Callable], batch: int = 256, repeats: int = 15
) -> dict[str, Timing]:
    """The seconds between two events around each function's launches, by name, taking turns.

    The functions are checked first, on the same arrays, and warm then. Needs CuPy and a GPU.
    """
    arrays, options = layer_arguments(operation, batch)
    there = [cuda.array_module().asarray(array) for array in arrays]
    calls = {
        name: functools.partial(function, *there, *(options if takes_stride(function) else ()))
        for name, function in functions.items()
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():

        def fetched(*_, call=call) -> None:
            call()
            arrays[-1][...] = there[-1].get()

        checked(operation, name, fetched, arrays, options)
    for _ in range(few(repeats)):
        for name, call in calls.items():
            samples[name].append(cuda.seconds(call))
    return {name: Timing(name, tuple(seconds)) for name, seconds in samples.items()}
