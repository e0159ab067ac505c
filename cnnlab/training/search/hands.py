"""Who trains: this process, the engines of a cluster, or the ranks of MPI and the virtual world.

Hands have `free`, how many could take a trial now; `give` hands one out, `take` waits for the first
result of any of them. `run` is the same for all.
"""

from collections import deque
from collections.abc import Callable

from cnnlab.ranks import mpi
from cnnlab.training.search.journal import Done, Journal
from cnnlab.training.search.protocol import Search, Trial
from cnnlab.training.search.trainer import Result, State

Evaluate = Callable[[Trial, State | None], Result]
WORK, RESULT = 1, 2  # tags
KEPT: dict[str, Evaluate] = {}  # on an engine: what it evaluates with


def run(search: Search | Journal, hands) -> list[Done]:
    """Hand a trial to whoever is free, until there are no more; all that was told, in order."""
    journal, out = search if isinstance(search, Journal) else Journal(search), 0
    while True:
        while hands.free and (trial := journal.ask()):
            hands.give(trial, journal.state(trial))
            out += 1
        if not out:
            return journal.done
        journal.tell(*hands.take())
        out -= 1


class Here:
    """This process, which trains when it is asked for the result."""

    def __init__(self, evaluate: Evaluate):
        self.evaluate, self.given = evaluate, []

    @property
    def free(self) -> int:
        """One, or none."""
        return 1 - len(self.given)

    def give(self, trial: Trial, state: State | None) -> None:
        """Put a trial aside."""
        self.given.append((trial, state))

    def take(self) -> tuple[Trial, Result]:
        """Train it."""
        trial, state = self.given.pop()
        return trial, self.evaluate(trial, state)


class Engines:
    """The engines of a `cnnlab.ranks.cluster.Cluster`: ipyparallel gives a trial to one that idles.

    `evaluate` goes to each of them once, with its images. If one fails, or dies, `take` raises
    RankError.
    """

    def __init__(self, cluster, evaluate: Evaluate):
        cluster.view.apply_sync(keep, evaluate)
        self.view = cluster.view.client.load_balanced_view(cluster.view.targets)
        self.cluster, self.given = cluster, {}

    @property
    def free(self) -> int:
        """How many engines have no trial."""
        return self.cluster.n_ranks - len(self.given)

    def give(self, trial: Trial, state: State | None) -> None:
        """Hand out a trial; its state goes along."""
        self.given[self.view.apply_async(evaluate_kept, trial, state)] = trial

    def take(self) -> tuple[Trial, Result]:
        """The first result to arrive."""
        call = self.cluster.first(self.given)
        trial, (rank, result) = self.given.pop(call), call.get()
        return trial, result._replace(report=result.report | {"rank": rank})


def keep(evaluate: Evaluate) -> None:
    """On an engine: keep what it evaluates with."""
    KEPT["evaluate"] = evaluate


def evaluate_kept(trial: Trial, state: State | None):
    """On an engine: its rank, and the result."""
    from cnnlab.ranks import world

    return world().rank, KEPT["evaluate"](trial, state)


class Workers:
    """Ranks 1, 2, … of a communicator, seen from rank 0. They run `serve`."""

    def __init__(self, comm):
        self.comm, self.idle, self.given = comm, deque(range(1, comm.size)), {}

    @property
    def free(self) -> int:
        """How many ranks have no trial."""
        return len(self.idle)

    def give(self, trial: Trial, state: State | None) -> None:
        """Send a trial, and its state, to the rank that has been idle for longest."""
        rank = self.idle.popleft()
        self.given[rank] = trial
        self.comm.send((trial, state), rank, WORK)

    def take(self) -> tuple[Trial, Result]:
        """The first result to arrive, from any rank."""
        rank, result = self.comm.recv(source=mpi.ANY_SOURCE, tag=RESULT)
        self.idle.append(rank)
        return self.given.pop(rank), result._replace(report=result.report | {"rank": rank})


def serve(comm, evaluate: Evaluate) -> None:
    """A worker's program: evaluate what rank 0 sends, until it sends None."""
    while work := comm.recv(source=0, tag=WORK):
        comm.send((comm.rank, evaluate(*work)), 0, RESULT)


def search_on(comm, search: Search | Journal | None, evaluate: Evaluate) -> list[Done] | None:
    """Search with the ranks of a communicator, two or more: rank 0 leads, the others train.

    Rank 0 returns what `run` does. The others need no `search`, and return None.
    """
    if comm.size < 2:
        raise ValueError("ranks: expected at least 2, one leads and the others train, got 1")
    if comm.rank:
        return serve(comm, evaluate)
    done = run(search, Workers(comm))
    for rank in range(1, comm.size):
        comm.send(None, rank, WORK)
    return done
