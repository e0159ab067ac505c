"""Right and wrong answers to the exercises of lesson 54."""

from cnnlab.lessons.lesson_54 import aware, challenge_backup, replies

served, backed = replies.model(), challenge_backup.model()


def of_any_age(comm, params, n_rounds, n_backup, step):
    waiting = set(range(1, comm.size))
    for _ in range(n_rounds):
        for worker in sorted(waiting):
            comm.send(params, dest=worker)
        waiting, gradients = set(), []
        while len(gradients) < comm.size - 1 - n_backup:
            worker, gradient = comm.recv()
            waiting.add(worker)
            gradients.append(gradient)
        step(params, sum(gradients), 0)
    for worker in range(1, comm.size):
        if worker not in waiting:
            comm.recv(source=worker)
        comm.send(None, dest=worker)


def waits_for_all(comm, params, n_rounds, n_backup, step):
    for _ in range(n_rounds):
        for worker in range(1, comm.size):
            comm.send(params, dest=worker)
        gradients = [comm.recv()[1] for _ in range(1, comm.size)]
        step(params, sum(gradients[:-n_backup]), 0)
    for worker in range(1, comm.size):
        comm.send(None, dest=worker)


def without_an_end(comm, params, n_rounds, n_backup, step):
    backed(comm, params, n_rounds - 1, n_backup, step)


def replies_before(comm, params, n_updates, staleness, step):
    due = []

    def late(params, gradient, missed):
        if due:
            step(params, *due.pop())
        due.append((gradient, missed))

    missed = served(comm, params, n_updates, staleness, late)
    step(params, *due.pop())
    return missed


def forgets(comm, params, n_updates, staleness, step):
    def once(params, gradient, missed):
        if missed < 2:
            step(params, gradient, missed)

    return served(comm, params, n_updates, staleness, once)


def never_aware(params, gradient, missed, rate):
    params -= rate * gradient


def divided_by_nothing(params, gradient, missed, rate):
    params -= rate / missed * gradient


def grown(params, gradient, missed, rate):
    gradient /= max(1, missed)
    params -= rate * gradient


RIGHT = [
    (replies, lambda *arguments: served(*arguments)),
    (aware, lambda params, gradient, missed, rate:
        params.__isub__(rate * gradient if missed == 0 else rate * gradient / missed)),
]  # fmt: skip
WRONG = [
    (replies, replies_before, "staleness 0, 30 gradients of a parabola: x is"),
    (replies, forgets, "of a parabola: x is"),
    (aware, never_aware, "missed = 2: a step of 1, not 0.5"),
    (aware, divided_by_nothing, "raised ZeroDivisionError"),
    (aware, grown, "missed = 2"),
    (aware, lambda params, gradient, missed, rate: params - rate * gradient, "a step of 0, not 1"),
    (challenge_backup, of_any_age, "along 4 gradients of the present parameters: got"),
    (challenge_backup, waits_for_all, "slow workers hold it up, for"),
    (challenge_backup, without_an_end, "20 steps"),
]  # fmt: skip
