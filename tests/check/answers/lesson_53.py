"""Answers to the exercises of lesson 53, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_53 import adam, first_step, nesterov, steps


def averaged(m, v, g):
    m *= 0.9
    m += 0.1 * g
    v *= 0.999
    v += 0.001 * g**2


def adam_as_printed(w, m, v, g, t, rate):
    averaged(m, v, g)
    step_size = rate / (1 - 0.9**t)
    w -= step_size * m / (np.sqrt(v) / np.sqrt(1 - 0.999**t) + 1e-8)


def from_zero(w, m, v, g, t, rate):
    averaged(m, v, g)
    with np.errstate(all="ignore"):
        w -= rate * m / np.float64(1 - 0.9 ** (t - 1)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def from_two(w, m, v, g, t, rate):
    adam_as_printed(w, m, v, g, t + 1, rate)


def inside(w, m, v, g, t, rate):
    averaged(m, v, g)
    w -= rate * m / (1 - 0.9**t) / np.sqrt(v / (1 - 0.999**t) + 1e-8)


def uncorrected(w, m, v, g, t, rate):
    averaged(m, v, g)
    w -= rate * m / (np.sqrt(v) + 1e-8)


def as_the_talk_prints_it(w, m, v, g, t, rate):
    averaged(m, v, g)
    m /= 1 - 0.9**t
    v /= 1 - 0.999**t
    w -= rate * m / (np.sqrt(v) + 1e-8)


def scaled_before(w, m, v, g, t, rate):
    adam_as_printed(w, m, v, rate * g, t, 1)


def not_in_place(w, m, v, g, t, rate):
    w = w - rate * g


def spoils_g(w, m, v, g, t, rate):
    g *= 0.1
    m *= 0.9
    m += g


def nesterov_by(ahead=1.0, mix=1.0, stale=False):
    def update(w, v, slope, rate, momentum):
        old = v.copy()
        v[:] = momentum * v - mix * rate * slope(w + ahead * momentum * v)
        w += old if stale else v

    return update


RIGHT = [
    (first_step, 10**0.5),
    (steps, lambda n_images, batch, factor, epochs: sum(
        int(np.ceil(n_images / (batch * factor**e))) for e in range(epochs))),
    (nesterov, nesterov_by()),
    (adam, adam_as_printed),
]  # fmt: skip
WRONG = [
    (first_step, 100, "too large"),
    (steps, lambda n_images, batch, factor, epochs: epochs * (-(-n_images // batch)), "steps("),
    (nesterov, nesterov_by(ahead=-1), "behind w"),
    (nesterov, nesterov_by(ahead=0), "plain momentum"),
    (nesterov, nesterov_by(mix=0.1), "1 − µ"),
    (nesterov, nesterov_by(stale=True), "before the update"),
    (adam, from_zero, "not finite"),
    (adam, from_two, "one too large"),
    (adam, inside, "inside the root"),
    (adam, uncorrected, "nothing is divided"),
    (adam, as_the_talk_prints_it, "carried on"),
    (adam, scaled_before, "is off by"),
    (adam, not_in_place, "has not moved"),
    (adam, spoils_g, "g is changed"),
]
