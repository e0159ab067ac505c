"""Answers to the exercises of lesson 10, right and wrong."""

from cnnlab.lessons.lesson_10 import barrier, causes, guided, parallel_loops


def chunks(size_of, cut=range):
    def schedule(n_tasks, n_threads):
        result, first = [], 0
        while first < n_tasks:
            last = first + max(1, size_of(n_tasks - first, n_threads))
            result.append(cut(first, min(last, n_tasks)))
            first = last
        return result

    return schedule


def sense(shared, size):
    mine = 1 - shared[1]
    shared[0] += 1
    if shared[0] == size:
        shared[0], shared[1] = 0, mine
    while shared[1] != mine:
        yield


def never_set_back(shared, size):
    everybody = (shared[0] // size + 1) * size
    shared[0] += 1
    while shared[0] < everybody:
        yield


def sets_back(shared, size):
    shared[0] += 1
    while shared[0] < size:
        yield
    shared[0] = 0


def right_once(shared, size):
    shared[0] += 1
    while shared[0] < size:
        yield


RIGHT = [
    (guided, chunks(lambda left, T: (left + 2 * T - 1) // (2 * T), lambda a, b: [*range(a, b)])),
    (barrier, sense),
    (barrier, never_set_back),
]
WRONG = [
    (parallel_loops, ["yes", "yes", "yes", "no"], "who else uses a[i - 1]?"),
    (parallel_loops, ["yes", "no", "no", "no"], "who writes b[2 * i]?"),
    (guided, chunks(lambda left, T: left // (2 * T)), "96 tasks on 2 threads: not yet in"),
    (guided, chunks(lambda left, T: -(-left // T)), "6 tasks on 4 threads: not yet in 5 chunks"),
    (guided, chunks(lambda left, T: 1), "not yet in 96 chunks with 96 tasks"),
    (guided, lambda n, T: guided.model()(n, T)[:-1], "not yet in 0 chunks with 0 tasks"),
    (guided, chunks(lambda left, T: -(-left // (2 * T)), lambda a, b: b - a), "raised TypeError"),
    (barrier, sets_back, "threads wait forever"),
    (barrier, right_once, "passed meeting 1 before all came"),
    (barrier, lambda shared, size: shared[0], "raised TypeError"),
    (causes, ["starts", "too few tasks", "the wrong clock", "a serial share"], "2 of 4 right"),
    (causes, ["a serial share", "starts", "the wrong clock", "too few tasks"], "where is it flat?"),
    (causes, ["races", "starts", "starts", "starts"], "expected 4 of"),
]
