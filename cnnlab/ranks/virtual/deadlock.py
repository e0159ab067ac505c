"""Who waits for whom when no rank can go on."""

from cnnlab.ranks.virtual.faults import blamed, written
from cnnlab.ranks.virtual.messages import ANY, Request


class Deadlock(RuntimeError):
    """Ranks wait for each other, or for one that has ended."""


def found(waiting: dict[int, tuple[Request, tuple]], calls: dict, ended: set[int]) -> Deadlock:
    """The error that names the ranks that wait: those in a circle first.

    `waiting` says for what request, and where; `calls` are the collectives under way.
    """
    stuck = circle(waiting)
    stuck += [rank for rank in sorted(waiting) if rank not in stuck]
    told = "; ".join(reason(rank, *waiting[rank], calls, ended) for rank in stuck[:8])
    error = Deadlock(f"deadlock: {told}{'; …' if len(stuck) > 8 else ''}")
    first = stuck[0]
    return blamed(error, "call matching", first, written(waiting[first][1]))


def circle(waiting: dict[int, tuple[Request, tuple]]) -> list[int]:
    """Ranks each of which waits for the next, and the last for the first; none, if there are not.

    The one with the lowest number comes first.
    """
    for rank in sorted(waiting):
        path = [rank]
        while (peer := waiting[path[-1]][0].peer) in waiting:
            if peer == rank:
                return path
            if peer in path:
                break
            path.append(peer)
    return []


def reason(rank: int, request: Request, where: tuple, calls: dict, ended: set[int]) -> str:
    """For whom a rank waits, for which message, and where."""
    whom = "any rank" if request.peer == ANY else f"rank {request.peer}"
    whom += " which has ended" if request.peer in ended else ""
    what = f"{request.kind}, tag {'any' if request.tag == ANY else request.tag}"
    what = f"in {calls[request.group].asked}" if request.group in calls else what
    return f"rank {rank} waits for {whom} ({what}, {written(where)})"
