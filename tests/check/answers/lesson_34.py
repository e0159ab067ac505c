"""Answers to the exercises of lesson 34, right and wrong."""

from itertools import permutations

from cnnlab.lessons.lesson_34 import challenge_schedule, obstacles, waits


def from_marks(queues, needs):
    """Another way: mark how far each stream knows each other one to be."""
    at = {name: (s, i) for s, queue in enumerate(queues) for i, name in enumerate(queue)}
    known, pairs = {}, []
    for name in sorted(at, key=lambda name: at[name][1]):
        mine = at[name][0]
        for other in sorted(needs[name], key=lambda other: at[other][1], reverse=True):
            stream, i = at[other]
            if stream != mine and known.get((mine, stream), -1) < i:
                known[mine, stream] = i
                pairs.append([name, other])
    return pairs


def all_needs(queues, needs):
    """An event for each need, also within a stream."""
    return {(name, other) for name, others in needs.items() for other in others}


def each_last(queues, needs, which=-1):
    """The last of each other stream, though the stream has waited for it before."""
    waits = {}
    for queue, other in permutations(queues, 2):
        for name in queue:
            if needed := [each for each in other if each in needs[name]]:
                waits[name, needed[which]] = True
    return waits


def each_first(queues, needs):
    return each_last(queues, needs, 0)


def turned(queues, needs):
    return {(other, name) for name, other in waits.model()(queues, needs)}


def all_orders(graph, k):
    """Every order, each operation on the stream that is free first."""
    best, plan = None, {}
    for order in permutations(graph):
        free, end, starts = [0] * k, {}, {}
        for name in order:
            work, needs = graph[name]
            if not all(other in end for other in needs):
                break
            stream = free.index(min(free))
            start = max([free[stream], *(end[other] for other in needs)])
            starts[name], end[name] = (stream, start), start + work
            free[stream] = end[name]
        else:
            if best is None or max(free) < best:
                best, plan = max(free), starts
    return plan


def listed(graph, k):
    """List scheduling, which is not always best."""
    left = dict.fromkeys(graph, 0)
    for name in reversed(graph):
        left[name] += graph[name][0]
        for other in graph[name][1]:
            left[other] = max(left[other], left[name])
    free, plan, end = [0] * k, {}, {}
    while len(plan) < len(graph):
        stream = free.index(min(free))
        starts = {
            name: max([free[stream], *(end[other] for other in needs)])
            for name, (_, needs) in graph.items()
            if name not in plan and all(other in plan for other in needs)
        }
        name = min(starts, key=lambda n: (starts[n], -left[n]))
        plan[name] = stream, starts[name]
        free[stream] = end[name] = starts[name] + graph[name][0]
    return plan


def one_stream(graph, k):
    now, plan = 0, {}
    for name, (work, _) in graph.items():
        plan[name] = 0, now
        now += work
    return plan


def no_needs(graph, k):
    """Shared out among the streams, without a look at what an operation needs."""
    free, plan = [0] * k, {}
    for name in sorted(graph, key=lambda name: -graph[name][0]):
        stream = free.index(min(free))
        plan[name] = stream, free[stream]
        free[stream] += graph[name][0]
    return plan


RIGHT = [
    (obstacles, ["launches", "critical path", "a full device", "memory", "critical path"]),
    (waits, from_marks),
    (challenge_schedule, all_orders),
]
WRONG = [
    (obstacles, ["critical path", "launches", "a full device", "memory", "critical path"], "who"),
    (obstacles, ["launches", "a full device", "a full device", "memory", "critical path"], "row?"),
    (
        obstacles,
        ["launches", "critical path", "memory", "memory", "critical path"],
        "is there room",
    ),
    (obstacles, ["launches", "critical path", "a full device", "memory", "launches"], "row?"),
    (waits, all_needs, "need not wait"),
    (waits, each_last, "need not wait"),
    (waits, each_first, "need not wait"),
    (waits, turned, "need not wait"),
    (waits, lambda queues, needs: set(), "does not wait"),
    (challenge_schedule, listed, "would do"),
    (challenge_schedule, one_stream, "would do"),
    (challenge_schedule, no_needs, "which it needs"),
    (challenge_schedule, lambda graph, k: dict.fromkeys(graph, (0, 0)), "on stream 0"),
    (challenge_schedule, lambda graph, k: {}, "expected a stream"),
]
