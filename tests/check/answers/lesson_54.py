"""Right and wrong answers to the exercises of lesson 54."""

from cnnlab.lessons.lesson_54 import aware, may_go_on, through_a_server


def aware_of_one_more(params, gradient, rate, missed):
    params -= rate / (1 + missed) * gradient


def never_aware(params, gradient, rate, missed):
    params -= rate * gradient


def divided_by_nothing(params, gradient, rate, missed):
    params -= rate / missed * gradient


def dropped(params, gradient, rate, missed):
    if missed < 5:
        params -= rate / max(1, missed) * gradient


def grown(params, gradient, rate, missed):
    gradient /= max(1, missed)
    params -= rate * gradient


def not_in_place(params, gradient, rate, missed):
    params = params - rate / max(1, missed) * gradient


def caps_the_age(worker, clocks, missed, staleness):
    return missed <= staleness * (len(clocks) - 1)


def caps_the_age_of_the_oldest(worker, clocks, missed, staleness):
    return missed <= staleness


RIGHT = [
    (through_a_server, lambda n_workers, n_parameters, n_servers:
        8 * n_workers * (n_parameters / n_servers)),
    (aware, lambda params, gradient, rate, missed:
        params.__isub__(rate * gradient if missed == 0 else rate * gradient / missed)),
    (may_go_on, lambda worker, clocks, missed, staleness:
        all(clocks[worker] <= clock + staleness for clock in clocks)),
]  # fmt: skip
WRONG = [
    (through_a_server, lambda n_workers, n_parameters, n_servers:
        4 * n_workers * n_parameters / n_servers, "through a server("),
    (through_a_server, lambda n_workers, n_parameters, n_servers:
        8 * n_workers * n_parameters, "through a server("),
    (aware, never_aware, "missed = 2: the step is 1 of the full one, not 0.5"),
    (aware, aware_of_one_more, "missed = 1: the step is 0.5 of the full one, not 1"),
    (aware, divided_by_nothing, "raised ZeroDivisionError"),
    (aware, dropped, "missed = 9: the parameters have not moved"),
    (aware, grown, "the gradient has changed"),
    (aware, not_in_place, "have not moved"),
    (may_go_on, caps_the_age, "goes on with a lead of"),
    (may_go_on, caps_the_age_of_the_oldest, "goes on with a lead of"),
    (may_go_on, lambda *_: True, "goes on with a lead of 1 steps"),
    (may_go_on, lambda *_: False, "all wait for ever"),
    (may_go_on, lambda worker, clocks, missed, staleness:
        clocks[worker] - clocks.min() < staleness, "all wait for ever"),
    (may_go_on, lambda worker, clocks, missed, staleness:
        clocks[worker] - clocks.min() <= staleness + 1, "goes on with a lead of"),
    (may_go_on, lambda worker, clocks, missed, staleness:
        clocks[worker] == clocks.min(), "and need not"),
    (may_go_on, lambda worker, clocks, missed, staleness:
        clocks[worker] - clocks.mean() <= staleness, "goes on with a lead of"),
]  # fmt: skip
