"""Times of whole training steps and epochs, with all contestants alternating in one run."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cnnlab.bench import machine, measure
from cnnlab.bench.contestants import Contestant
from cnnlab.bench.resident import Resident
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.runtime.registry import Entry, find, listed
from cnnlab.training import RATE

EPOCH = 60_000  # images
FLOPS = 2 * sum(Network().multiply_adds.values()) * EPOCH  # an epoch's multiply-adds alone
PEERS = listed(
    Entry(
        "torch",
        "PyTorch in eager mode, on a GPU too where it finds one",
        "cnnlab.bench.torch_peer:peers",
    )
)


def contestants(
    names: Sequence[str], data, batch: int, n_threads: int, against: str | None
) -> dict[str, Contestant | Resident]:
    """Contestants by name: one for each of KERNELS in `names`, and the peer `against`, or None.

    A strategy that keeps its data on the device has a contestant for each way to launch a step.
    """
    found = {}
    for strategy in (KERNELS[name] for name in names):
        if resident_steps := strategy.optional("resident_steps"):
            params, data_set = Network().parameters(0), (data.train_images, data.train_labels)
            ways = resident_steps(params, *data_set, batch=batch, rate=RATE)
            found |= {name: Resident(*way, data) for name, way in ways.items()}
        else:
            found[strategy.name] = Contestant(strategy, data, batch, n_threads)
    if against is not None:
        found |= find("against", against, PEERS)(data, batch, n_threads)
    return found


def step_times(
    found: dict[str, Contestant | Resident],
    *,
    others: dict[str, Callable[[], object]] | None = None,
    repeats: int = 11,
    min_time: float = 0.1,
) -> dict[str, measure.Timing]:
    """The time of one training step by each contestant; all are checked before any is timed.

    `others` are calls to time in the same run: a processor changes its clock from run to run.
    """
    timings = measure.compare(
        {name: one.steps for name, one in found.items()} | (others or {}),
        checks={name: one.check for name, one in found.items()},
        repeats=repeats,
        min_time=min_time,
    )
    n_steps = {name: one.n_steps for name, one in found.items()}
    return {name: scaled(timing, 1 / n_steps.get(name, 1)) for name, timing in timings.items()}


def scaled(timing: measure.Timing, factor: float) -> measure.Timing:
    """A timing with every sample multiplied by `factor`."""
    return replace(timing, samples=tuple(factor * s for s in timing.samples))


def epochs(
    found: dict[str, Contestant | Resident],
    batch: int,
    repeats: int,
    *,
    peak: bool = False,
    min_time: float = 0.1,
) -> dict[str, measure.Timing]:
    """The time of an epoch of 60,000 images by each contestant; all are checked first.

    With `peak`, the result has an entry "peak": the time of an epoch's multiply-adds at the peak
    of one core, measured in the same run.
    """
    others, factors = {}, {}
    if peak:
        others["peak"], flops = machine.peak_sweep()
        factors["peak"] = FLOPS / flops
    timings = step_times(found, others=others, repeats=repeats, min_time=min_time)
    return {
        name: scaled(timing, factors.get(name, EPOCH / batch)) for name, timing in timings.items()
    }
