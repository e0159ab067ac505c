"""Challenges: a learner's kernel beside the rungs of a lesson, proved, timed or counted, drawn."""

import functools
import inspect
from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab import check, cuda
from cnnlab.check import collective, device, threads
from cnnlab.check.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.measure import machine, timing
from cnnlab.measure.bench import checked, layer_arguments, layer_call
from cnnlab.measure.studies import Study, study
from cnnlab.measure.timing import Timing, ratio
from cnnlab.network import Network
from cnnlab.plots import charts
from cnnlab.plots.style import GREY, as_rows, colors, figure, note
from cnnlab.ranks import measure
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool
from cnnlab.runtime.failures import few

MINE, GOAL, MPI = "mine", "vector", "MPI"  # the last is the collective of the library
Rungs = Mapping[str, Callable]  # kernels of the lesson by name, with the arguments of `mine`


def challenge(
    operation: str,
    mine: Callable,
    rungs: Rungs | None = None,
    *,
    n_threads: int = 1,
    batch: int = 64,
    repeats: int = 9,
) -> Axes | None:
    """Prove a kernel, say what share of `vector` and of the machine's roof it reaches, and draw it.

    All are timed in turn, at the network's sizes. On more than one thread the kernel must be
    parallel, and is looked at for races. The dashed line is the roof, see `floor`. Returns None,
    and times nothing, where the kernel is wrong or still empty: only its verdict is shown. Nothing
    is asserted about time. Raises ValueError for an operation that the network does not have.
    """
    arrays, options = layer_arguments(operation, batch)
    by = check.kernel if n_threads == 1 else threads.kernel
    if still_open(operation, mine) or not check.exercise(operation, mine, by):
        return None
    calls = {GOAL: layer_call(GOAL, operation, batch)}
    for name, kernel in {**(rungs or {}), MINE: mine}.items():
        given = options if takes_stride(kernel) else ()
        checked(operation, name, kernel, arrays, given)
        calls[name] = functools.partial(kernel, *arrays, *given)
    order = [*(rungs or {}), GOAL, MINE]
    with thread_pool.threads(n_threads):
        timings = timing.compare({name: calls[name] for name in order}, repeats=repeats)
    share, base, roof, bounds = ratio(timings[GOAL], timings[MINE]).value, order[0], "", None
    if least := floor(operation, batch, sum(array.nbytes for array in arrays), n_threads):
        cores = "one core" if n_threads == 1 else f"{n_threads} cores"
        roof = f", and {least / timings[MINE].median:.0%} of the roof of {cores}"
        bounds = {"roof": timings[base].median / least}
    print(f"Your {operation} reaches {share:.0%} of the speed of {GOAL}{roof}.")
    title = f"Your {operation} is at {share:.0%} of {GOAL}"
    return charts.speedups(timings, base, per=f"batch of {batch}", title=title, bounds=bounds)


def still_open(operation: str, mine: Callable) -> bool:
    """Whether an answer is still empty; says so."""
    return empty(mine) and not Verdict(False, f"{operation}: the challenge is still open").report()


def takes_stride(kernel: Callable) -> bool:
    """Whether a kernel has an argument for the stride."""
    return "stride" in inspect.signature(getattr(kernel, "py_func", kernel)).parameters


def floor(operation: str, batch: int, moved: int, n_threads: int) -> float | None:
    """The least seconds in which cores can do an operation that moves so many bytes.

    Its multiply-adds take that long at their peak, or its arrays at the memory's bandwidth where no
    cache holds them. None for an operation without multiply-adds.
    """
    work = Network().multiply_adds
    work["conv_backward_input"] = work["conv_forward"]  # no step needs it, but it is as large
    if operation not in work:
        return None
    seconds = 2 * work[operation] * batch / (machine.float32_peak() * n_threads)
    largest = max((machine.describe()["caches"] or {"none": 0}).values())
    return seconds if moved <= largest else max(seconds, moved / machine.memory_bandwidth())


def challenge_ranks(
    operation: str,
    mine: Callable,
    rungs: Rungs | None = None,
    *,
    n: int = 100_000,
    repeats: int = 11,
) -> Axes | None:
    """Prove a collective on 1 to 5 ranks, say what share of MPI's speed it reaches, and draw it.

    `mine` and the `rungs` take (comm, array), see `collective.kernel`; `n` is the number of float32
    on each rank, one for each core, from 2 to 8. Returns None, and times nothing, where `mine` is
    wrong, still empty, or calls a collective of MPI.
    """
    if still_open(operation, mine):
        return None
    if not collective.kernel(operation, mine, messages=True).report():
        return None
    calls = {**(rungs or {}), MPI: None, MINE: mine}
    with cluster(max(2, min(8, thread_pool.usable_cores()))) as ranks:
        samples = ranks.run(measure.race, operation, calls, n, repeats)[0]
    timings = {name: Timing(name, tuple(samples[name])) for name in calls}
    share = ratio(timings[MPI], timings[MINE]).value
    title = f"Your {operation} reaches {share:.0%} of the speed of MPI's own"
    print(f"{title}.")
    return charts.speedups(timings, base=MPI, title=title)


def challenge_traffic(operation: str, mine: Callable, rungs: Rungs | None = None) -> Axes | None:
    """Prove kernels in CUDA C, say how many times the least bytes they move, and draw that.

    `mine` and the `rungs` launch kernels on NumPy arrays. The emulator counts, for one image at the
    network's sizes. Returns None where the kernel is wrong or still empty.
    """
    if still_open(operation, mine) or not check.exercise(operation, mine, device.kernel):
        return None
    moved, least = count(operation, {**(rungs or {}), MINE: mine})
    times = {name: f"{n / least:.3g}" for name, n in moved.items()}
    title = f"Your {operation} moves {times.pop(MINE)} times the least bytes"
    print(title + "".join(f", {name} {many}" for name, many in times.items()) + ".")
    return bytes_moved(moved, least, title=title)


def count(operation: str, functions: Mapping[str, Callable]) -> tuple[dict[str, int], int]:
    """The bytes that kernels of these functions move, by name, as if nothing were cached.

    And the least that any kernel moves: each array once. All are checked against the reference.
    """
    arrays, options = layer_arguments(operation, 1)
    moved = {}
    for name, function in functions.items():
        with cuda.traced() as traces:
            checked(operation, name, function, arrays, options if takes_stride(function) else ())
        moved[name] = sum(trace.requested() for trace in traces)
    return moved, sum(array.nbytes for array in arrays)


@figure
def bytes_moved(moved: Mapping[str, int], least: int) -> Axes:
    """Draw the bytes that kernels move, beside the least that any kernel moves."""
    _, ax = plt.subplots(figsize=(7, 1.3 + 0.4 * len(moved)))
    names, sizes = list(moved), [n / 1e3 for n in moved.values()]
    ax.barh(names, sizes, 0.62, color=colors(names))
    ax.axvline(least / 1e3, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "any kernel must", (least / 1e3, -0.5), (0, 3), ha="center", color=GREY)
    for y, size in enumerate(sizes):
        text = f"{size:,.0f} kB, {1e3 * size / least:.3g} times that"
        note(ax, text, (size, y), (5, 0), va="center")
    ax.set(xlabel="kB moved, as if nothing were cached", xlim=(0, 1.7 * max(sizes)))
    return as_rows(ax, names)


def on_gpu(name: str, rungs: Mapping[str, Rungs]) -> Study:
    """The seconds of kernels on 256 images, by operation and name: a study, measured on a GPU."""

    def run(operation: str) -> dict[str, float]:
        timings = event_times(operation, rungs[operation])
        return {name: timing.median for name, timing in timings.items()}

    return study(name, run, [(operation,) for operation in rungs], here=cuda.gpu()[0])


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
