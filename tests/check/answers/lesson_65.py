"""Answers to the exercises of lesson 65, right and wrong."""

from itertools import accumulate

from cnnlab.lessons.lesson_65 import broadcast, challenge_soonest, diagnosis
from cnnlab.ranks.schedules import IDLE, NOBODY, Step, block


def by_places(rank, order, n, pieces):
    """With the rounds of each piece counted from its GPU's place."""
    place = order.index(rank)
    for k in range(len(order) - 2 + pieces):
        to, source, sent, got = NOBODY, NOBODY, (0, 0), (0, 0)
        if place + 1 < len(order) and place <= k < place + pieces:
            to, sent = order[place + 1], block(k - place, pieces, n)
        if place and place - 1 <= k < place - 1 + pieces:
            source, got = order[place - 1], block(k - place + 1, pieces, n)
        yield Step(to, *sent, source, *got)


def whole(rank, order, n, pieces):
    """One message of all after the other, in as many rounds."""
    place = order.index(rank)
    for k in range(len(order) - 1):
        if place == k:
            yield Step(to=order[place + 1], b=n)
        else:
            yield Step(source=order[k], d=n) if place == k + 1 else IDLE


def by_rank(rank, order, n, pieces):
    """Along the ranks, not along the order."""
    return broadcast.model()(rank, sorted(order), n, pieces)


def same_round(rank, order, n, pieces):
    """A piece goes on in the round in which it comes."""
    for step in broadcast.model()(rank, order, n, pieces):
        yield step._replace(a=step.c, b=step.d) if step.source != NOBODY else step


def adding(rank, order, n, pieces):
    return (s._replace(add=True, a=s.a) for s in broadcast.model()(rank, order[::-1], n, pieces))


def nothing(rank, order, n, pieces):
    return [IDLE] * (pieces + len(order) - 2)


def forward(seconds, sizes, cost):
    """The best of what is left, from the last bucket on."""
    ready = [0, *accumulate(seconds)]

    def best(j, free):
        ends = range(j + 1, len(sizes) + 1)
        later = (best(i, max(ready[i], free) + cost(sum(sizes[j:i]))) for i in ends)
        return min(later, default=free)

    return best(0, 0)


def one_bucket(seconds, sizes, cost):
    return sum(seconds) + cost(sum(sizes))


def each_alone(seconds, sizes, cost):
    now = free = 0
    for each, n in zip(seconds, sizes, strict=True):
        now += each
        free = max(now, free) + cost(n)
    return free


def sums_wait_for_nothing(seconds, sizes, cost):
    """Two allreduces at the same time."""
    return max(ready + cost(n) for ready, n in zip(accumulate(seconds), sizes, strict=True))


def greedy(seconds, sizes, cost):
    """Sends whatever is ready as soon as the network is free."""
    now = free = pending = 0
    for each, n in zip(seconds, sizes, strict=True):
        now, pending = now + each, pending + n
        if free <= now:
            free, pending = now + cost(pending), 0
    return max(now, free) + cost(pending) if pending else free


SPOTS = ["calls", "launches", "rendezvous", "last bucket", "shared link"]
RIGHT = [(broadcast, by_places), (challenge_soonest, forward), (diagnosis, SPOTS)]
WRONG = [
    (broadcast, whole, "rounds on each GPU"),
    (broadcast, by_rank, "has something else"),
    (broadcast, same_round, "broadcast:"),
    (broadcast, adding, "has something else"),
    (broadcast, nothing, "has something else"),
    (challenge_soonest, one_bucket, "expected"),
    (challenge_soonest, each_alone, "expected"),
    (challenge_soonest, sums_wait_for_nothing, "expected"),
    (challenge_soonest, greedy, "expected"),
    (challenge_soonest, lambda seconds, sizes, cost: sum(seconds), "expected"),
    (diagnosis, ["launches", *SPOTS[1:]], "1 is not launches"),
    (diagnosis, [SPOTS[0], "last bucket", *SPOTS[2:]], "2 is not last bucket"),
    (diagnosis, [*SPOTS[:2], "shared link", *SPOTS[3:]], "3 is not shared link"),
    (diagnosis, [*SPOTS[:3], "launches", SPOTS[4]], "4 is not launches"),
    (diagnosis, [*SPOTS[:4], "rendezvous"], "5 is not rendezvous"),
]
