"""Answers to the exercises of lesson 10, right and wrong."""

from cnnlab.lessons.lesson_10 import barrier, causes, guided


def halves(n_tasks, n_threads):
    """From the left over, with a list of tasks instead of ranges."""
    left, chunks = list(range(n_tasks)), []
    while left:
        size = (len(left) + 2 * n_threads - 1) // (2 * n_threads)
        chunks, left = [*chunks, left[:size]], left[size:]
    return chunks


def rounded_down(n_tasks, n_threads):
    chunks, first = [], 0
    while first < n_tasks:
        size = max(1, (n_tasks - first) // (2 * n_threads))
        chunks.append(range(first, first + size))
        first += size
    return chunks


def even_shares(n_tasks, n_threads):
    """The whole of an even share: the last thread has no small chunks to even out."""
    chunks, first = [], 0
    while first < n_tasks:
        size = -(-(n_tasks - first) // n_threads)
        chunks.append(range(first, first + size))
        first += size
    return chunks


def never_shrinks(n_tasks, n_threads):
    size = -(-n_tasks // (2 * n_threads))
    return [range(k, min(k + size, n_tasks)) for k in range(0, n_tasks, size)]


def forgets_the_end(n_tasks, n_threads):
    return guided.model()(n_tasks, n_threads)[:-1]


def sizes_only(n_tasks, n_threads):
    return [len(chunk) for chunk in guided.model()(n_tasks, n_threads)]


def sense(shared, size):
    """A sense that turns over: the other value than before."""
    mine = 1 - shared[1]
    shared[0] += 1
    if shared[0] == size:
        shared[0], shared[1] = 0, mine
    while shared[1] != mine:
        yield


def never_set_back(shared, size):
    """The lesson's: everybody waits for the next multiple of the size."""
    everybody = (shared[0] // size + 1) * size
    shared[0] += 1
    while shared[0] < everybody:
        yield


def sets_back(shared, size):
    shared[0] += 1
    while shared[0] < size:
        yield
    shared[0] = 0


def never_waits(shared, size):
    shared[0] += 1
    yield


def right_once(shared, size):
    shared[0] += 1
    while shared[0] < size:
        yield


def waits_for_one_too_few(shared, size):
    meeting = shared[1]
    shared[0] += 1
    if shared[0] >= size - 1:
        shared[:] = 0, meeting + 1
    while shared[1] == meeting:
        yield


def looks_too_late(shared, size):
    """Reads the number of the meeting after it has come: the last has moved it on already."""
    shared[0] += 1
    if shared[0] == size:
        shared[:] = 0, shared[1] + 1
    meeting = shared[1]
    while shared[1] == meeting:
        yield


def no_generator(shared, size):
    shared[0] += 1


RIGHT = [
    (guided, halves),
    (barrier, sense),
    (barrier, never_set_back),
]
WRONG = [
    (guided, rounded_down, "96 tasks on 2 threads: not yet in"),
    (guided, even_shares, "6 tasks on 4 threads: not yet in 5 chunks"),
    (guided, never_shrinks, "not yet in 4 chunks with 96 tasks"),
    (guided, forgets_the_end, "1 tasks on 4 threads: not yet in 0 chunks with 0 tasks"),
    (guided, sizes_only, "raised TypeError"),
    (barrier, sets_back, "threads wait forever"),
    (barrier, never_waits, "passed meeting 0 before all came"),
    (barrier, right_once, "passed meeting 1 before all came"),
    (barrier, waits_for_one_too_few, "before all came"),
    (barrier, looks_too_late, "wait forever"),
    (barrier, no_generator, "raised TypeError"),
    (causes, ["starts", "too few tasks", "the wrong clock", "a serial share"], "2 of 4 right"),
    (causes, ["a serial share", "starts", "the wrong clock", "too few tasks"], "where is it flat?"),
    (causes, ["the wrong clock", ..., "a serial share", ...], "0 of 4 right; 1 is not"),
    (causes, ["races", "starts", "starts", "starts"], "expected 4 of"),
]
