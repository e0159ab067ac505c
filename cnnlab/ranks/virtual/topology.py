"""Which links a message crosses from one virtual rank to another, and how long it waits for them.

A message goes over all links of its route at once, as fast as the slowest of them, and arrives
after the latency of each. Until it is out, none of these links carries another one in the same
direction; who asks first is served first. Real networks share links in smaller pieces.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cnnlab.ranks.virtual.link import Link
from cnnlab.runtime.arguments import at_least

NODES = re.compile(r"nodes of (\d+): *([^;]+);(.+)")
NVLINK, PCIE = 25e9, 16e9  # bytes/s each way: a link of NVLink 2, and 16 lanes of PCIe 3
# Links of NVLink between the GPUs of a DGX-1 with V100, six of each: a cube whose edges are single
# or double, and both diagonals of two faces. NVIDIA, "NVIDIA DGX-1 With Tesla V100 System
# Architecture", WP-08437-002, 2017; which are double is what `nvidia-smi topo -m` says of one.
CUBE_MESH = {
    **{(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2},
    **{(4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2},
    **{(0, 4): 2, (1, 5): 2, (2, 6): 1, (3, 7): 1},
}


class Hop(NamedTuple):
    """One way of a link: messages with the same `key` share it."""

    key: Hashable
    link: Link


Route = tuple[Hop, ...]


@dataclass(frozen=True)
class Network:
    """Links between ranks: `route(source, dest)` says which of them a message crosses.

    `link` says what a call costs a rank, and from what length on messages wait for their receiver.
    `most` is the number of ranks that there is room for; None: any.
    """

    name: str
    link: Link
    find: Callable[[int, int], Route]
    most: int | None = None
    known: dict = field(default_factory=dict, compare=False, repr=False)

    def route(self, source: int, dest: int) -> Route:
        """The links that a message crosses; none to the rank itself."""
        ends = source, dest
        if (found := self.known.get(ends)) is None:
            found = self.known[ends] = self.find(source, dest) if source != dest else ()
        return found

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

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OneMemory(Network):
    """Ranks in one memory, where no network carries anything: their processors copy.

    So what two ranks have for each other takes turns, if it is long: such a message waits for its
    receiver, takes `handshake` seconds more, and keeps the pair until it has arrived.
    """

    handshake: float = 0.0

    def carry(self, busy: dict, source: int, dest: int, n_bytes: int, begin: float) -> tuple:
        """As of any network."""
        if n_bytes <= self.link.eager or source == dest:
            return super().carry(busy, source, dest, n_bytes, begin)
        pair = frozenset((source, dest))
        taken = self.handshake + self.link.latency + self.link.sending(n_bytes)
        busy[pair] = max(begin, busy.get(pair, 0.0)) + taken
        return busy[pair], busy[pair]


def one_memory(link: Link, handshake: float = 0.0) -> OneMemory:
    """Ranks in one memory; `link` is what one message costs while there is no other."""
    find = all_to_all(link).find
    return OneMemory(f"{link} in one memory", link, find, handshake=handshake)


def all_to_all(link: Link) -> Network:
    """A link of their own between any two ranks."""
    return Network(str(link), link, lambda a, b: (Hop((a, b), link),))


def ring(n_ranks: int, link: Link) -> Network:
    """Links between neighbours on a ring; messages go the shorter way around."""
    at_least("n_ranks", n_ranks, 1)

    def find(a: int, b: int) -> Route:
        way = 1 if 2 * ((b - a) % n_ranks) <= n_ranks else -1
        at, hops = a, []
        while at != b:
            hops.append(Hop((at, (at + way) % n_ranks), link))
            at = (at + way) % n_ranks
        return tuple(hops)

    return Network(f"a ring of {link}", link, find, n_ranks)


def two_level(ranks_per_node: int, inside: Link, between: Link) -> Network:
    """Nodes of so many ranks: links of their own inside; all ranks of a node share its one outside.

    What a call costs, and from what length on messages wait, is as on the links inside.
    """
    at_least("ranks_per_node", ranks_per_node, 1)

    def find(a: int, b: int) -> Route:
        first, second = a // ranks_per_node, b // ranks_per_node
        if first == second:
            return (Hop((a, b), inside),)
        half = replace(between, latency=between.latency / 2)  # up to a switch, and down
        return Hop(("up", first), half), Hop(("down", second), half)

    return Network(f"nodes of {ranks_per_node}: {inside}; between nodes {between}", inside, find)


def dgx1(latency: float = 2e-6, call: float = 0.5e-6) -> Network:
    """Eight GPUs with one or two links of NVLink to four others; to the rest, PCIe and the CPUs.

    Two GPUs share 16 lanes of PCIe. Bandwidths are those of the links, which programs do not reach.
    """
    through = Link(latency, PCIE, call)

    def find(a: int, b: int) -> Route:
        if n := CUBE_MESH.get((min(a, b), max(a, b))):
            return (Hop((a, b), Link(latency, n * NVLINK, call)),)
        up, down = Hop(("up", a // 2), through), Hop(("down", b // 2), through)
        return (up, Hop(("cpu", a // 4), through), down)

    return Network("a DGX-1's NVLink", Link(latency, NVLINK, call), find, 8)


def parse(text: str, n_ranks: int) -> Network:
    """A network of n ranks from a text: "10us,1GB/s" between any two, "ring: 10us,1GB/s", "dgx1",

    or "nodes of 8: 1us,50GB/s; 10us,10GB/s", links inside and between. ValueError for any other.
    """
    text = text.strip()
    if text == "dgx1":
        return dgx1()
    if text.startswith("ring:"):
        return ring(n_ranks, Link.parse(text.removeprefix("ring:")))
    if found := NODES.fullmatch(text):
        return two_level(int(found[1]), Link.parse(found[2]), Link.parse(found[3]))
    return all_to_all(Link.parse(text))


def network_of(what: "Network | Link | str | None", n_ranks: int) -> Network:
    """The network that is meant: one, a link between any two ranks, or a text, see `parse`.

    Raises ValueError if there is no room for so many ranks, TypeError for anything else.
    """
    network = parse(what, n_ranks) if isinstance(what, str) else what
    if isinstance(network, Link | None):
        network = all_to_all(network or Link())
    if not isinstance(network, Network):
        got = type(what).__name__
        raise TypeError(f"network: expected a Network, a Link or a text, got {got}")
    if network.most and n_ranks > network.most:
        raise ValueError(f"n_ranks: expected at most {network.most} on {network}, got {n_ranks}")
    return network
