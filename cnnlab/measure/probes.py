"""What this machine does to a program: caches, latencies, lines, pages, branches, cores."""

import functools
import mmap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cnnlab.kernels.variants import probes
from cnnlab.kernels.vector import lanes
from cnnlab.measure import machine
from cnnlab.measure.timing import Timing, compare, measure
from cnnlab.runtime.failures import few

LINE = 64  # bytes of a cache line on most processors
LARGEST = 32 << 20  # bytes: an array of this size lies in memory, or in a cache of many cores


def sizes(largest: int = LARGEST) -> list[int]:
    """Sizes of arrays in bytes, from 4 KiB: each about half as large again as the one before."""
    powers = [1 << n for n in range(12, largest.bit_length())]
    return sorted({*powers, *(size * 3 // 2 for size in powers[:-1])})


def reading(many: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Reading arrays of so many bytes from one end to the other; `work` is the bytes of a call."""
    result = []
    for size in many:
        a, times = ones(size // 4), max(1, (1 << 20) // size)
        call = functools.partial(probes.read_all, a, times)
        result.append(measure(call, name="reading", repeats=repeats, work=a.nbytes * times))
    return result


def ones(n: int) -> np.ndarray:
    """n float32 that begin at the start of a cache line, written: only then are there pages."""
    a = lanes.zeros(n)
    a[:] = 1
    return a


def following(many: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Following a random path through all cache lines of so many bytes; `work` is its steps."""
    return [
        measure(
            functools.partial(probes.follow, path(size), 10_000),
            name="following",
            repeats=repeats,
            work=10_000,
        )
        for size in many
    ]


def path(size: int) -> np.ndarray:
    """An array of `size` bytes that holds, at the start of each cache line, where to go next.

    The path visits all lines in random order and ends where it began: no prefetcher can guess it.
    """
    each = LINE // 8
    order = np.random.default_rng(0).permutation(size // LINE).astype(np.uint64) * np.uint64(each)
    places = np.zeros(size // 8, np.uint64)
    places[order] = np.roll(order, -1)
    return places


def adding(n: int = 4096, repeats: int = 15) -> dict[str, Timing]:
    """Adding up n numbers in one sum, two and four; `work` is n."""
    a = np.ones(n, np.float32)
    kernels = {1: probes.add_up_1, 2: probes.add_up_2, 4: probes.add_up_4}
    calls = {k: functools.partial(kernel, *a.reshape(k, -1)) for k, kernel in kernels.items()}
    named = {f"{k} sum{'s' * (k > 1)}": call for k, call in calls.items()}
    return compare(named, repeats=repeats, work=n)


def striding(strides: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Reading every `stride`-th float32 of a large array; `work` is how many are read."""
    a = np.ones(LARGEST // 4, np.float32)
    return [
        measure(
            functools.partial(probes.touch, a, stride),
            name="striding",
            repeats=repeats,
            work=-(-a.size // stride),
        )
        for stride in strides
    ]


def page_times(n_pages: int = 4096, repeats: int = 9) -> dict[str, Timing]:
    """The time of a write to a page of 4 KiB: the first that it ever sees, and a later one."""
    samples = {"first write": [], "later write": []}
    for _ in range(few(repeats)):
        pages = np.frombuffer(mmap.mmap(-1, n_pages * 4096), np.uint8)  # fresh from the system
        call = functools.partial(probes.write_pages, pages)
        for times in samples.values():
            times.append(machine.seconds_of(call) / n_pages)
    return {name: Timing(name, tuple(times)) for name, times in samples.items()}


def branch_times(n: int = 100_000, repeats: int = 15) -> dict[str, Timing]:
    """The same condition, true for half of n numbers: as they come, and after sorting them."""
    a = np.random.default_rng(0).random(n, np.float32)
    calls = {"in random order": a, "sorted": np.sort(a)}
    half = np.float32(0.5)
    return compare(
        {name: functools.partial(probes.roots_below, group, half) for name, group in calls.items()},
        repeats=repeats,
        work=n,
    )


def on_cores(counts: Sequence[int], size: int, repeats: int = 9) -> list[Timing]:
    """The time of an array's worth of reading where each of n threads reads one of `size` bytes."""
    arrays = [ones(size // 4) for _ in range(max(counts))]
    times = max(1, LARGEST // size)

    def read(n):
        for _ in threads.map(lambda a: probes.read_all(a, times), arrays[:n]):
            pass

    with ThreadPoolExecutor(max(counts)) as threads:
        calls = {str(n): functools.partial(read, n) for n in counts}
        result = compare(calls, repeats=repeats)
    return [Timing("reading", tuple(s / n for s in result[str(n)].samples)) for n in counts]


@functools.cache
def roofs() -> dict[str, float]:
    """Bytes/s that reach one core from each cache, and from memory: the roofs of a roofline.

    The array read takes half of the cache, of a cache of more than LARGEST a quarter of that. As
    for every ceiling, the fastest repetition counts.
    """
    caches = machine.describe()["caches"] or {}
    halves = {name: min(size // 2, LARGEST // 4) for name, size in caches.items()}
    timed = zip(halves, reading(list(halves.values()), repeats=15), strict=True)
    result = {name.removesuffix("d"): t.work / min(t.samples) for name, t in timed}
    return result | {"memory": machine.memory_bandwidth()}
