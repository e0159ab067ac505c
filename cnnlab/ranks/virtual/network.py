"""Networks of virtual ranks: links, topologies made of them, and how fast ranks compute.

A message goes over all links of its route at once, as fast as the slowest of them, and arrives
after the latency of each. Until it is out, none of these links carries another one in the same
direction; who asks first is served first. Real networks share links in smaller pieces.
"""

import itertools
import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cnnlab.runtime.arguments import at_least, not_negative, positive

UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
SHORT = (1, "s"), (1e3, "ms"), (1e6, "µs")
LARGE = (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")
TEXT = re.compile(r"([\d.]+) ?(ns|us|µs|ms|s), ?([\d.]+) ?([kMG]?)B/s")
NODES = re.compile(r"nodes of (\d+): *([^;]+);(.+)")
NVLINK, PCIE = 25e9, 16e9  # bytes/s each way: a link of NVLink 2, and 16 lanes of PCIe 3
HOP = 2e-6  # seconds that each of them takes
# Links of NVLink between the GPUs of a DGX-1 with V100, six of each: a cube whose edges are single
# or double, and both diagonals of two faces. NVIDIA, "NVIDIA DGX-1 With Tesla V100 System
# Architecture", WP-08437-002, 2017; which are double is what `nvidia-smi topo -m` says of one.
CUBE_MESH = {
    **{(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2},
    **{(4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2},
    **{(0, 4): 2, (1, 5): 2, (2, 6): 1, (3, 7): 1},
}


@dataclass(frozen=True)
class Link:
    """Between any two ranks: `latency` in seconds, `bandwidth` in bytes/s, each way on its own.

    `call` is what a send or receive costs the rank itself, in seconds. Messages of more than
    `eager` bytes wait until the receiver is there (MPI's rendezvous); shorter ones are sent off.
    """

    latency: float = 10e-6
    bandwidth: float = 1e9
    call: float = 0.5e-6
    eager: int = 65536

    def __post_init__(self):
        for name in ("latency", "call", "eager"):
            not_negative(name, getattr(self, name))
        if not 0 < self.bandwidth <= math.inf:
            raise ValueError(f"bandwidth: expected a positive number, got {self.bandwidth!r}")

    @classmethod
    def parse(cls, text: str) -> "Link":
        """A link from a text such as "10us,1GB/s". Raises ValueError for any other."""
        if not (match := TEXT.fullmatch(text.strip())):
            raise ValueError(f"link: expected a text such as 10us,1GB/s, got {text!r}")
        latency, unit, bandwidth, scale = match.groups()
        return cls(float(latency) * UNITS[unit], float(bandwidth) * BYTES[scale])

    def __str__(self) -> str:
        scale, unit = next(row for row in LARGE if self.bandwidth >= row[0] or row[0] == 1)
        factor, name = next(row for row in SHORT if self.latency * row[0] >= 1 or row[0] == 1e6)
        bandwidth = f"{self.bandwidth / scale:.3g} {unit}"
        return f"links of {factor * self.latency:.3g} {name} and {bandwidth}"


class Hop(NamedTuple):
    """One direction of a link: messages with the same `key` share it."""

    key: Hashable
    link: Link


Route = tuple[Hop, ...]


@dataclass(frozen=True)
class Interconnect:
    """Links between ranks: `route(source, dest)` says which of them a message crosses.

    `link` says what a call costs a rank, and from what length on messages wait for their receiver.
    `most` is the number of ranks that there is room for; None: any.
    """

    name: str
    link: Link
    find: Callable[[int, int], Route]
    most: int | None = None
    known: dict = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name

    def route(self, source: int, dest: int) -> Route:
        """The links that a message crosses; none to the rank itself."""
        if (source, dest) not in self.known:
            self.known[source, dest] = self.find(source, dest) if source != dest else ()
        return self.known[source, dest]

    def carry(self, busy: dict, source: int, dest: int, n_bytes: int, begin: float) -> tuple:
        """When n bytes that may leave at `begin` are out, and when they arrive, in seconds.

        `busy` says until when each link is; it is brought up to date.
        """
        slowest = latency = 0.0
        route = self.route(source, dest)
        for key, link in route:
            begin = max(begin, busy.get(key, 0.0))
            slowest, latency = max(slowest, n_bytes / link.bandwidth), latency + link.latency
        out = begin + slowest
        for key, _ in route:
            busy[key] = out
        return out, out + latency


def all_to_all(link: Link) -> Interconnect:
    """A link of their own between any two ranks."""
    return Interconnect(str(link), link, lambda a, b: (Hop((a, b), link),))


def ring(n_ranks: int, link: Link) -> Interconnect:
    """Links between neighbours on a ring; messages go the shorter way around."""

    def find(a: int, b: int) -> Route:
        distance = (b - a) % n_ranks
        step, n = (1, distance) if 2 * distance <= n_ranks else (-1, n_ranks - distance)
        ranks = [(a + step * k) % n_ranks for k in range(n + 1)]
        return tuple(Hop(ends, link) for ends in itertools.pairwise(ranks))

    return Interconnect(f"a ring of {link}", link, find, n_ranks)


def two_level(ranks_per_node: int, inside: Link, between: Link) -> Interconnect:
    """Nodes of so many ranks: each pair has a link inside; a node's ranks share one link outside.

    The cost of a call and the eager limit are those of the links inside.
    """
    at_least("ranks_per_node", ranks_per_node, 1)

    def find(a: int, b: int) -> Route:
        first, second = a // ranks_per_node, b // ranks_per_node
        if first == second:
            return (Hop((a, b), inside),)
        half = replace(between, latency=between.latency / 2)  # up to a switch, and down
        return Hop(("up", first), half), Hop(("down", second), half)

    return Interconnect(
        f"nodes of {ranks_per_node}: {inside}; between nodes {between}", inside, find
    )


def dgx1() -> Interconnect:
    """Eight GPUs with one or two links of NVLink to four others; to the rest, PCIe and the CPUs.

    Two GPUs share 16 lanes of PCIe. Bandwidths are those of the links, which programs do not reach.
    """
    through = Link(HOP, PCIE)

    def find(a: int, b: int) -> Route:
        if n := CUBE_MESH.get((min(a, b), max(a, b))):
            return (Hop((a, b), Link(HOP, n * NVLINK)),)
        up, down = Hop(("up", a // 2), through), Hop(("down", b // 2), through)
        return (up, Hop(("cpu", a // 4), through), down)

    return Interconnect("a DGX-1's NVLink", Link(HOP, NVLINK), find, 8)


def parse(text: str, n_ranks: int) -> Interconnect:
    """A network of n ranks from a text: "10us,1GB/s" between any two, "ring: 10us,1GB/s", "dgx1",

    or "nodes of 8: 1us,50GB/s; 10us,10GB/s", links inside and between. ValueError for any other.
    """
    text = text.strip()
    if text == "dgx1":
        return dgx1()
    if text.startswith("ring:"):
        return ring(n_ranks, Link.parse(text.removeprefix("ring:")))
    if match := NODES.fullmatch(text):
        return two_level(int(match[1]), Link.parse(match[2]), Link.parse(match[3]))
    return all_to_all(Link.parse(text))


def network_of(given: "Interconnect | Link | str | None", n_ranks: int) -> Interconnect:
    """The Interconnect given, or that of a link between any two ranks, or of a text, see `parse`.

    Raises ValueError if there is no room for so many ranks, TypeError for anything else.
    """
    network = parse(given, n_ranks) if isinstance(given, str) else given
    if isinstance(network, Link | None):
        network = all_to_all(network or Link())
    if not isinstance(network, Interconnect):
        got = type(given).__name__
        raise TypeError(f"network: expected an Interconnect, a Link or a text, got {got}")
    if network.most and n_ranks > network.most:
        raise ValueError(f"n_ranks: expected at most {network.most} on {network}, got {n_ranks}")
    return network


class Pace:
    """Factors on the time of computing: `speed` maps some ranks to one, the others have 1.

    With `jitter` s, each section takes exp(s x) times as long besides, with x from a standard
    normal distribution: the median stays, and a rank draws the same whatever the others do. Raises
    ValueError for factors that are not positive, or of other ranks.
    """

    def __init__(self, n_ranks: int, speed: Mapping, jitter: float = 0.0, seed: int = 0):
        if strangers := [rank for rank in speed if rank not in range(n_ranks)]:
            raise ValueError(f"speed: expected ranks below {n_ranks}, got {strangers[0]}")
        for factor in speed.values():
            positive("speed", factor)
        not_negative("jitter", jitter)
        self.speed, self.jitter, self.seed = speed, jitter, seed
        self.draws: dict[int, np.random.Generator] = {}

    def factor(self, rank: int) -> float:
        """The factor on a rank's next section of computing."""
        if not self.jitter:
            return self.speed.get(rank, 1.0)
        draw = self.draws.setdefault(rank, np.random.default_rng([self.seed, rank]))
        return self.speed.get(rank, 1.0) * math.exp(self.jitter * draw.standard_normal())
