"""Run a program again and again, each time as MPI also may, and say what is wrong with it.

What a plain run shows is found at once: see `World.run`. Further runs show what depends on luck: no
message is buffered; what is received is seen only after `Wait`; and of messages that a receive from
any source could take, the last one comes first.
"""

import functools
import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import numpy as np

from cnnlab.ranks.virtual.faults import Fault, leaks, written
from cnnlab.ranks.virtual.messages import Request
from cnnlab.ranks.virtual.network import Link
from cnnlab.ranks.virtual.world import World


class Replay(World):
    """A world in which a program runs as MPI also may; it notes what tells one run from another.

    A receive at one of the sites `late` (None: at any) is seen only after `Wait`; `backwards`, the
    last message that a receive from any source can take comes first. `courses` has what each pair
    of ranks has sent, and what collectives gave each rank, `receives` the sites of receives that
    are waited for, `choices` rank, site and source of each receive from any source.
    """

    def __init__(self, *world, late: Collection | None = (), backwards: bool = False):
        super().__init__(*world)
        self.seen_late, self.backwards, self.error = late, backwards, None
        self.courses: dict[tuple[int, int], list] = {}
        self.receives: dict[tuple, str] = {}
        self.choices: list[tuple[int, tuple, int]] = []

    def send(self, request: Request) -> None:
        group, pair = request.group, (request.rank, request.peer)
        partial = type(group) is tuple and group[-1] == "collective"  # may depend on who did what
        data = None if partial else request.data
        self.courses.setdefault(pair, []).append((request.tag, group, data))
        super().send(request)

    def delivered(self, rank: int, result) -> None:
        self.courses.setdefault((rank, None), []).append(pickle.dumps(result))

    def late(self, receive: Request) -> bool:
        self.receives[receive.rank, receive.where] = receive.kind
        return self.seen_late is None or (receive.rank, receive.where) in self.seen_late

    def until(self, at: float) -> float:
        """As of any world; backwards, until no other rank can go on."""
        return math.inf if self.backwards else at

    def choose(self, there: list[tuple]) -> tuple:
        """As of any world; backwards, the last. It is noted."""
        first_or_last = max if self.backwards else min
        at, send, receive = first_or_last(there, key=lambda one: (one[0], one[1].rank))
        if receive.any_source:
            self.choices.append((receive.rank, receive.where, send.rank))
        return at, send, receive

    def play(self, program: Callable, arguments: Sequence) -> "Replay":
        """Run a program; what it raises is kept as its `error`."""
        try:
            self.run(program, *arguments)
        except Exception as error:  # also the program's own: another run may raise none
            self.error = error
        return self


def examine(program: Callable, n_ranks: int, *arguments) -> list[Fault]:
    """The faults of `program(comm, *arguments)` on so many ranks; none, if none was found.

    The program is run two to four times, and more often to say where a fault is; it must do the
    same each time. What it raises itself is raised. Not found is what no run shows: a buffer that
    was changed and changed back, or a race whose first and last message to arrive do the same.
    """

    def play(link: Link | None = None, **how) -> Replay:
        return Replay(n_ranks, link, **how).play(program, arguments)

    plain = play()
    if plain.error:
        if not (faults := getattr(plain.error, "faults", [])):
            raise plain.error
        return faults
    faults = leaks(plain)
    unbuffered = play(Link(eager=0))
    if unbuffered.error and play().error is None:
        for fault in getattr(unbuffered.error, "faults", [])[:1]:
            text = f"it ends only because messages are small: {unbuffered.error}"
            faults.append(fault._replace(kind="buffering hazard", text=text))
    if plain.receives and differs(play, plain, late=None):
        faults += early_reads(play, plain)
    if plain.choices and (what := differs(play, plain, backwards=True)):
        faults += races(plain, play(backwards=True), what)
    return faults


def early_reads(play: Callable, plain: Replay) -> list[Fault]:
    """The receives whose buffers are read before `Wait`."""
    faults = []
    for (rank, where), kind in plain.receives.items():
        if what := differs(play, plain, late=[(rank, where)]):
            done = "Flush or Fence" if kind in ("Get", "Fetch_and_op") else "Wait"
            text = f"the buffer of this {kind} is read before {done}: {what}"
            faults.append(Fault("local concurrency", rank, written(where), text))
    return faults


def races(plain: Replay, other: Replay, what: str) -> list[Fault]:
    """The first receive from any source that takes another message in another run."""
    taken: dict[tuple, list[int]] = {}
    for rank, where, source in plain.choices:
        taken.setdefault((rank, where), []).append(source)
    for rank, where, source in other.choices:
        first = taken.get((rank, where), [])
        before = first.pop(0) if first else source
        if before != source:
            text = f"from any source, it takes the message of rank {before} or that of {source}"
            return [Fault("message race", rank, written(where), f"{text}: {what}")]
    return []


def differs(play: Callable, plain: Replay, **how) -> str:
    """How another run differs from the plain one; "" if it does not, or if all runs differ."""
    farm = "backwards" in how
    what = difference(plain, play(**how), farm)
    return what if what and not difference(plain, play(), farm) else ""


def difference(one: Replay, other: Replay, farm: bool = False) -> str:
    """How one run differs from another, in words; "" if it does not.

    In a `farm` it makes no difference which rank a message comes from or goes to.
    """
    if other.error:
        return f"another run ends with {type(other.error).__name__}: {other.error}"
    for rank in range(one.size):
        if not alike(one.results[rank], other.results[rank]):
            return f"in another run, rank {rank} returns something else"
    if farm and all_sent(one) == all_sent(other):
        return ""
    for source, to in one.courses | other.courses:
        if one.courses.get((source, to)) != other.courses.get((source, to)):
            sends = f"sends something else to rank {to}"
            different = "has another result of a collective" if to is None else sends
            return f"in another run, rank {source} {different}"
    return ""


def all_sent(run: Replay) -> Counter:
    """How often each message of a run was sent, by whomever to whomever."""
    return Counter(itertools.chain(*run.courses.values()))


def alike(a, b, compared: frozenset = frozenset()) -> bool:
    """Whether two results are the same, as far as can be seen."""
    if type(a) is not type(b):
        return False
    if id(a) in compared or isinstance(a, type):
        return True
    same = functools.partial(alike, compared=compared | {id(a)})
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dict__"):
        return same(vars(a), vars(b))
    return type(a).__eq__ is object.__eq__ or bool(a == b) or bool(a != a and b != b)
