"""Times of whole training steps and epochs, all contestants alternated in one run."""

from collections.abc import Callable, Sequence

from cnnlab.bench import machine, measure
from cnnlab.bench.contestants import Contestant
from cnnlab.bench.resident import Resident
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.runtime.registry import Entry, listed
from cnnlab.training import RATE

EPOCH = 60_000  # images
FLOPS = 2 * sum(Network().multiply_adds.values()) * EPOCH  # of multiply-adds alone
PEERS = listed(Entry("torch", "PyTorch in eager mode", "cnnlab.bench.torch_peer:TorchContestant"))


def contestants(names: Sequence[str], data, batch: int, n_threads: int, against: str | None):
    """The strategies of these names, and the peer if one is asked for, as one dictionary.

    A strategy that can keep its data on the device takes part with each way to do so.
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
        found[against] = PEERS[against].load()(data, batch, n_threads)
    return found


def step_times(
    found: dict[str, Contestant],
    *,
    others: dict[str, Callable[[], object]] | None = None,
    repeats: int = 11,
    min_time: float = 0.1,
) -> dict[str, measure.Timing]:
    """Seconds of one training step by each contestant; every one is checked first.

    `others` are calls that take turns with them: a processor does not keep its clock.
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
    """A timing with all samples times the factor."""
    return measure.Timing(timing.name, tuple(factor * s for s in timing.samples))


def epochs(
    found: dict[str, Contestant], batch: int, repeats: int, *, peak: bool = False
) -> dict[str, measure.Timing]:
    """Seconds for an epoch of 60,000 images by each contestant; every one is checked first.

    With `peak` also, under that name, what the multiply-adds of an epoch take at the peak of one
    core, alternately with the others.
    """
    others, factors = {}, {}
    if peak:
        others["peak"], flops = machine.peak_sweep()
        factors["peak"] = FLOPS / flops
    timings = step_times(found, others=others, repeats=repeats)
    return {
        name: scaled(timing, factors.get(name, EPOCH / batch)) for name, timing in timings.items()
    }
