"""A plan of each method: a few steps of it, played in the virtual world and counted.

Ranks run the method's own code and send its messages, so the bytes of a plan are exact. The time of
a step comes from the virtual clocks: messages cost what the link says, and kernels what they cost
on this machine (`Measured`) or by a model (`modelled`). No method has an entry here.

A step is an eighth of what nine batches take longer than one, so that neither the start of an epoch
counts nor which step of eight it is that models are averaged in.

On more than PLAYED ranks a play takes seconds: there, a plan is extrapolated from PLAYS. Its
seconds, memory and bytes are each a sum of TERMS with coefficients of at least 0, fitted by least
squares of relative errors, of which those of more ranks count more. So are performance models by
Calotoiu, Hoefler, Poke and Wolf, "Using automated performance modeling to find scalability bugs in
complex codes" (2013), who search among more terms. What begins beyond PLAYED ranks is not seen,
such as a queue at a server that fewer workers do not make.
"""

import functools
import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType

import numpy as np
from scipy.optimize import nnls

from cnnlab.distributed import METHODS, options
from cnnlab.distributed.trial import Charged, Trial, modelled
from cnnlab.kernels import Strategy, find
from cnnlab.network import NETWORKS
from cnnlab.ranks import measure, world
from cnnlab.ranks.virtual import Link, World
from cnnlab.runtime import arguments
from cnnlab.runtime.arguments import at_least, one_of
from cnnlab.training import Replica, Sgd

STEPS, MANY = 8, 500  # steps that are counted after a first one; 2 of so many messages or more
PLAYED = 16  # ranks: on more of them, some method takes longer than a second to play
PLAYS = (2, 4, 8, 16)  # ranks from which more are extrapolated
# What grows how: a share of the batch; what a ring sends; rounds of a tree; a message to each rank.
TERMS = (lambda p: 1 / p, lambda p: (p - 1) / p, np.log2, lambda p: p - 1.0)
SIZES = (4, 256, 4096, 65536, 262144)  # float32, by which a link is measured


@dataclass(frozen=True)
class Plan:
    """A step of a method: its `seconds`, `n_bytes` and `n_messages` that all ranks send in it.

    `busiest` are the bytes of the rank that sends most; `held` those that the fullest rank holds at
    once: arrays that kernels and optimiser were given, and what the method keeps; no buffers of
    messages. `extrapolated` from fewer ranks, or else played.
    """

    variant: str
    n_ranks: int
    batch: int
    seconds: float
    n_bytes: float
    n_messages: float
    busiest: float
    held: float
    extrapolated: bool = False

    @property
    def images_per_second(self) -> float:
        """Images of all ranks."""
        return self.batch / self.seconds


class Measured:
    """What kernels take on this machine, in seconds: a median by name and shapes.

    Calls are timed where they stand in a step, so that caches are as full as they are there.
    `settle` takes the medians of what has been called since; what has one keeps it.
    """

    def __init__(self):
        self.samples: dict[tuple, list[float]] = {}
        self.known: dict[tuple, float] = {}

    def __call__(self, name: str, arrays: Sequence, took: float) -> float:
        """The seconds to charge for a kernel that took so long; while it is not settled, those."""
        key = (name, *(getattr(array, "shape", array) for array in arrays))
        if key not in self.known:
            self.samples.setdefault(key, []).append(took)
        return self.known.get(key, took)

    def settle(self) -> None:
        """From now on, charge the medians of all but the first call, which may have compiled."""
        for key, samples in self.samples.items():
            self.known[key] = float(np.median(samples[1:] or samples))
        self.samples = {}


class HeldBytes:
    """The bytes of arrays that a rank was shown and that are still there; `most` at once."""

    def __init__(self):
        self.there: dict[int, weakref.ref] = {}
        self.now = self.most = 0

    def see(self, arrays: Sequence) -> None:
        """Count those that are new, each with the whole memory that it is a view of."""
        for array in filter(lambda array: isinstance(array, np.ndarray), arrays):
            while isinstance(array.base, np.ndarray):
                array = array.base
            if id(array) not in self.there:
                gone = functools.partial(self.forget, id(array), array.nbytes)
                self.there[id(array)] = weakref.ref(array, gone)
                self.now += array.nbytes
                self.most = max(self.most, self.now)

    def forget(self, key: int, n_bytes: int, gone: weakref.ref) -> None:
        """An array is no more."""
        del self.there[key]
        self.now -= n_bytes


class ChargedSgd(Sgd):
    """Plain gradient descent, whose updates are charged for as a kernel is."""

    def __init__(self, rate: float, kernels: Charged):
        super().__init__(rate)
        self.kernels = kernels

    def update(self, params, grads, n_images: int) -> None:
        """A step; a block of the parameters costs by its size."""
        step = functools.partial(Sgd.update, self)
        charged = self.kernels.charged("update", lambda *flat: step(params, grads, n_images))
        charged(params.flat, grads.flat)


def link_here() -> Link:
    """On each of two ranks or more: the link that costs what messages between them cost."""
    samples = measure.ping_pong(world(), SIZES, repeats=5)
    latency, gap = fit(SIZES, np.median(samples, axis=1))
    gap = max(gap, 1e-12)  # a link has some bandwidth
    return world().bcast(Link(latency, 1 / gap, call=0.0))  # the latency has the call in it


def fit(sizes: Sequence[int], seconds: Sequence[float]) -> np.ndarray:
    """Latency in seconds and gap in seconds per byte, from one-way times of so many float32.

    A message of s bytes takes latency + s · gap, both ≥ 0, by least squares of relative errors.
    """
    columns = np.c_[np.ones(len(sizes)), 4 * np.asarray(sizes, float)]
    scale = columns.max(0)  # the two columns differ by powers of ten
    scaled, _ = nnls(columns / scale / np.c_[seconds], np.ones(len(sizes)))
    return scaled / scale


def options_of(variant: str) -> tuple[str, dict[str, object]]:
    """The name of a variant's method, and its options, by name. ValueError if it cannot be."""
    words = arguments.Parser(add_help=False)
    options.add_options(words)
    try:
        chosen = words.parse_args(["--ranks", *variant.split()])
        if chosen.virtual or chosen.link:
            raise ValueError("ranks and links are those of the plan")
        options.method(chosen)
    except ValueError as problem:
        raise ValueError(f"{variant}: {problem}") from None
    return chosen.ranks, options.given(chosen)


def play(
    variant: str,
    network: str,
    n_ranks: int,
    batch: int,
    n_batches: int,
    link: Link | str | None = None,
    cost: Callable = modelled,
) -> tuple[World, list[int]]:
    """An epoch of so many batches, of noise, on virtual ranks: their world; the bytes each holds.

    `network` is a name in NETWORKS, `link` is that of a `World`.
    """
    name, chosen = options_of(variant)

    def program(comm) -> int:
        held = HeldBytes()
        whole = isinstance(cost, Measured)
        kernels = Charged(find("vector"), comm, cost, held.see, whole)
        trial = Trial(comm, name, network, batch, kernels=kernels, **chosen)
        replica, method = trial.replica, trial.method
        replica.optimizer = ChargedSgd(1e-3, kernels)
        method.make_room(replica)
        method.epoch(replica, np.tile(trial.chosen, n_batches), lambda loss, n_images: None)
        others = (array for array in kept_by(method) if id(array) not in held.there)
        n_bytes = held.most + sum(array.nbytes for array in others)
        method.close()
        return n_bytes

    played = World(n_ranks, link)
    return played, played.run(program)


def kept_by(method) -> list[np.ndarray]:
    """The arrays that a method holds, each whole; not those of its ranks and its replica."""
    others = type, ModuleType, FunctionType, Strategy, Replica
    todo, seen, arrays = [method], set(), {}
    while todo:
        one = todo.pop()
        ranks = type(one).__module__.startswith("cnnlab.ranks")
        if id(one) in seen or ranks or isinstance(one, others):
            continue
        seen.add(id(one))
        while isinstance(one, np.ndarray) and isinstance(one.base, np.ndarray):
            one = one.base
        if isinstance(one, np.ndarray):
            arrays[id(one)] = one
        else:
            todo += gc.get_referents(one)
    return list(arrays.values())


def counted(variant: str, network: str, n_ranks: int, batch: int, link, cost: Callable) -> Plan:
    """A plan from steps that are played. Raises ValueError where the method cannot be so."""
    where = variant, network, n_ranks, batch
    seen, held = play(*where, 1, link)  # layer by layer, so that all arrays are seen
    steps = STEPS if len(seen.record.messages) < MANY else 2
    if isinstance(cost, Measured):
        play(*where, 1 + steps // 2, link, cost)
        cost.settle()
    first, last = (play(*where, n, link, cost)[0] for n in (1, 1 + steps))
    pairs = zip(first.record.by_pair(), last.record.by_pair(), strict=True)
    messages, n_bytes = ((after - before) / steps for before, after in pairs)
    seconds = (last.seconds - first.seconds) / steps
    sums = n_bytes.sum(), messages.sum(), n_bytes.sum(1).max(), max(held)
    return Plan(variant, n_ranks, batch, seconds, *map(float, sums))


def extrapolated(plans: Sequence[Plan], n_ranks: int) -> Plan:
    """The plan of more ranks that plans of few of them point to; of sums, a rank's share does."""
    numbers, ranks = {}, np.array([plan.n_ranks for plan in plans], float)
    table = np.array([[term(p) for term in TERMS] for p in ranks])
    terms = [term(n_ranks) for term in TERMS]
    for name in ("seconds", "n_bytes", "n_messages", "busiest", "held"):
        shared = name in ("n_bytes", "n_messages")
        values = np.array([getattr(plan, name) for plan in plans]) / (ranks if shared else 1)
        if values.any():
            scale = np.maximum(values, 1e-3 * values.max()) / ranks**2
            weights, _ = nnls(table / scale[:, None], values / scale)
            numbers[name] = float(weights @ terms) * (n_ranks if shared else 1)
    return replace(plans[-1], n_ranks=n_ranks, extrapolated=True, **numbers)


def plan(
    variant: str,
    network: str = "report",
    n_ranks: int = 4,
    batch: int = 64,
    link: Link | str | None = None,
    cost: Callable = modelled,
) -> Plan:
    """What a step would take, send and hold: played, or, on more than PLAYED ranks, extrapolated.

    A method that cannot be played on each of PLAYS is played as it is, or ValueError is raised.
    """
    at_least("ranks", n_ranks, 1)
    at_least("batch", batch, 1)
    one_of("network", network, NETWORKS)
    if n_ranks > PLAYED:
        try:
            few = [counted(variant, network, p, batch, link, cost) for p in PLAYS]
        except ValueError:
            few = []  # such as a grid, which has one number of ranks
        if few:
            return extrapolated(few, n_ranks)
    return counted(variant, network, n_ranks, batch, link, cost)


def plans(variants: Sequence[str] = (), **how) -> tuple[list[Plan], dict[str, str]]:
    """A plan for each variant that can be, most images a second first; why others cannot be.

    `variants` are methods with options, as `train --ranks` has them, or METHODS; `how`: see `plan`.
    """
    planned, refused = [], {}
    for variant in variants or METHODS:
        try:
            planned.append(plan(variant, **how))
        except ValueError as problem:
            refused[variant] = str(problem).removeprefix(f"{variant}: ")
    return sorted(planned, key=lambda one: -one.images_per_second), refused


def table(planned: Sequence[Plan], refused: Mapping[str, str]) -> str:
    """A line for each plan, in order, and one for each variant that cannot be."""
    rows = [("", "images/s", "ms a step", "kB sent", "messages", "kB held", "")]
    for one in planned:
        numbers = one.images_per_second, 1e3 * one.seconds, one.busiest / 1e3, one.n_messages
        cells = (short(number) for number in (*numbers, one.held / 1e3))
        rows.append((one.variant, *cells, "extrapolated" * one.extrapolated))
    lines = [f"{variant}: not planned: {why}" for variant, why in refused.items()]
    return "\n".join([arguments.table(rows, "<>>>>>>"), *lines])


def short(number: float) -> str:
    """A number with four digits, or all that are before its point."""
    digits = len(f"{number:.0f}")
    return f"{number:,.{max(0, 4 - digits)}f}" if number else "0"
