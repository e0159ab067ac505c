"""Answers to the exercises of lesson 62, right and wrong."""

from itertools import combinations, pairwise

from cnnlab.lessons.lesson_62 import buddy_free, challenge_offsets, diagnosis, least_peak


def by_programme(sizes, k):
    """For each sum that a segment may have, the cheapest checkpoints, by dynamic programming."""
    n, best = len(sizes), sum(sizes)
    for most in {sum(sizes[a:b]) for a in range(n) for b in range(a, n + 1)}:
        cost = {(-1, 0): 0}  # the last checkpoint, how many: their bytes
        for i in range(n):
            for (last, used), total in list(cost.items()):
                if used < k and sum(sizes[last + 1 : i]) <= most:
                    now = total + sizes[i]
                    cost[i, used + 1] = min(now, cost.get((i, used + 1), now))
        ends = [t for (last, _), t in cost.items() if sum(sizes[last + 1 :]) <= most]
        best = min([best, *(total + most for total in ends)])
    return best


def evenly(sizes, k):
    """Checkpoints at equal distances, whatever they weigh."""
    chosen = sorted({len(sizes) * j // (k + 1) for j in range(1, k + 1)})
    ends = [-1, *chosen, len(sizes)]
    segments = [sum(sizes[a + 1 : b]) for a, b in pairwise(ends)]
    return sum(sizes[i] for i in chosen) + max(segments)


def exactly(sizes, k):
    """All k of them, needed or not."""
    return min(
        sum(sizes[i] for i in chosen)
        + max(sum(sizes[a + 1 : b]) for a, b in pairwise([-1, *chosen, len(sizes)]))
        for chosen in combinations(range(len(sizes)), min(k, len(sizes)))
    )


def segment_alone(sizes, k):
    """Without the checkpoints themselves."""
    return min(
        max(sum(sizes[a + 1 : b]) for a, b in pairwise([-1, *chosen, len(sizes)]))
        for chosen in combinations(range(len(sizes)), min(k, len(sizes)))
    )


def by_first_fit(tensors):
    """In the order in which they come, as a pool would."""
    offsets = []
    for first, last, size in tensors:
        offset = 0
        taken = sorted(
            (o, n)
            for o, (a, b, n) in zip(offsets, tensors, strict=False)
            if a <= last and first <= b
        )
        for start, n in taken:
            if start < offset + size:
                offset = max(offset, start + n)
        offsets.append(offset)
    return offsets


def one_behind_the_other(tensors):
    return [sum(n for *_, n in tensors[:i]) for i in range(len(tensors))]


def last_is_free(tensors):
    """As if the last task no longer had it."""
    return challenge_offsets.model()([(first, last - 1, n) for first, last, n in tensors])


def by_halves(empty, start, length):
    """From the set of all free units, as whole pieces as possible."""
    units = {u for s, n in (*empty.items(), (start, length)) for u in range(s, s + n)}
    pieces, size = {}, 64
    while size := size // 2:
        for s in range(0, 32, size):
            if units >= {*range(s, s + size)}:
                pieces[s] = size
                units -= {*range(s, s + size)}
    return pieces


def with_neighbours(empty, start, length):
    """As the pool of the lesson coalesces."""
    for other, n in list(empty.items()):
        if other + n == start or start + length == other:
            del empty[other]
            start, length = min(start, other), length + n
    return empty | {start: length}


def one_level(empty, start, length):
    if empty.get(start ^ length) == length:
        del empty[start ^ length]
        return empty | {min(start, start ^ length): 2 * length}
    return empty | {start: length}


def buddy_in_part(empty, start, length):
    """Whatever is empty at the buddy's place is taken for all of it."""
    while start ^ length in empty:
        del empty[start ^ length]
        start, length = min(start, start ^ length), 2 * length
    return empty | {start: length}


SEEN = ["leak", "thrashing", "other random numbers", "fragmentation", "freed too early"]
RIGHT = [
    (buddy_free, by_halves),
    (least_peak, by_programme),
    (challenge_offsets, lambda tensors: tuple(challenge_offsets.model()(tensors))),
    (diagnosis, SEEN),
]
WRONG = [
    (buddy_free, lambda empty, start, length: empty | {start: length}, "expected"),
    (buddy_free, with_neighbours, "expected"),
    (buddy_free, one_level, "expected"),
    (buddy_free, buddy_in_part, "expected"),
    (least_peak, evenly, "expected"),
    (least_peak, exactly, "expected"),
    (least_peak, segment_alone, "expected"),
    (least_peak, lambda sizes, k: max(sizes), "expected"),
    (challenge_offsets, by_first_fit, "are enough"),
    (challenge_offsets, one_behind_the_other, "are enough"),
    (challenge_offsets, last_is_free, "overlap"),
    (challenge_offsets, lambda tensors: [0] * len(tensors), "overlap"),
    (challenge_offsets, lambda tensors: [0], "an offset"),
    (diagnosis, ["thrashing", *SEEN[1:]], "1 is not thrashing"),
    (diagnosis, [SEEN[0], "fragmentation", *SEEN[2:]], "2 is not fragmentation"),
    (diagnosis, [*SEEN[:2], "freed too early", *SEEN[3:]], "3 is not freed too early"),
    (diagnosis, [*SEEN[:3], "leak", SEEN[4]], "4 is not leak"),
    (diagnosis, [*SEEN[:4], "fragmentation"], "5 is not fragmentation"),
]
