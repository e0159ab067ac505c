"""Answers to the exercises of lesson 53, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_53 import adamw, challenge_lars, corrected, critical_batch, nesterov


def averaged(m, v, g):
    m *= 0.9
    m += 0.1 * g
    v *= 0.999
    v += 0.001 * g**2


def decoupled(w, direction, rate, decay):
    w -= rate * direction + rate * decay * w


def adam_as_printed(w, m, v, g, t, rate, decay):
    averaged(m, v, g)
    bias = np.sqrt(1 - 0.999**t)
    decoupled(w, m / (1 - 0.9**t) / (np.sqrt(v) / bias + 1e-8), rate, decay)


def from_zero(w, m, v, g, t, rate, decay):
    averaged(m, v, g)
    with np.errstate(all="ignore"):
        direction = m / np.float64(1 - 0.9 ** (t - 1)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        decoupled(w, direction, rate, decay)


def from_two(w, m, v, g, t, rate, decay):
    adam_as_printed(w, m, v, g, t + 1, rate, decay)


def inside(w, m, v, g, t, rate, decay):
    averaged(m, v, g)
    decoupled(w, m / (1 - 0.9**t) / np.sqrt(v / (1 - 0.999**t) + 1e-8), rate, decay)


def uncorrected(w, m, v, g, t, rate, decay):
    averaged(m, v, g)
    decoupled(w, m / (np.sqrt(v) + 1e-8), rate, decay)


def as_the_talk_prints_it(w, m, v, g, t, rate, decay):
    averaged(m, v, g)
    m /= 1 - 0.9**t
    v /= 1 - 0.999**t
    decoupled(w, m / (np.sqrt(v) + 1e-8), rate, decay)


def scaled_before(w, m, v, g, t, rate, decay):
    adam_as_printed(w, m, v, rate * g, t, 1, rate * decay)


def l2(w, m, v, g, t, rate, decay):
    adam_as_printed(w, m, v, g + decay * w, t, rate, 0)


def no_decay(w, m, v, g, t, rate, decay):
    adam_as_printed(w, m, v, g, t, rate, 0)


def decay_without_rate(w, m, v, g, t, rate, decay):
    adam_as_printed(w, m, v, g, t, rate, decay / rate)


def not_in_place(w, m, v, g, t, rate, decay):
    w = w - rate * g


def spoils_g(w, m, v, g, t, rate, decay):
    g *= 0.1
    m *= 0.9
    m += g


def corrected_by(factor=lambda rate, last: rate / last, sign=1):
    def update(w, v, g, rate, last):
        v[:] = 0.9 * factor(rate, last) * v - rate * g
        w += sign * v

    return update


def lars_by(trust, decayed=True):
    def update(layers, grads, rate, decay):
        for w, g in zip(layers, grads, strict=True):
            w -= rate * trust(w, g, decay) * (g + decay * decayed * w)

    return update


def norm(x):
    return np.sqrt(np.square(x).sum())


def ratio(w, g, decay):
    return norm(w) / (norm(g) + decay * norm(w))


def one_norm_for_all(layers, grads, rate, decay):
    whole, slope = (np.concatenate([x.ravel() for x in each]) for each in (layers, grads))
    trust = ratio(whole, slope, decay)
    for w, g in zip(layers, grads, strict=True):
        w -= rate * trust * (g + decay * w)


def nesterov_by(ahead=1.0, mix=1.0, stale=False):
    def update(w, v, slope, rate, momentum):
        old = v.copy()
        v[:] = momentum * v - mix * rate * slope(w + ahead * momentum * v)
        w += old if stale else v

    return update


RIGHT = [
    (critical_batch, lambda steps_8, steps_512: 512 * 8 * (steps_8 - steps_512)
        / (512 * steps_512 - 8 * steps_8)),
    (corrected, corrected_by()),
    (nesterov, nesterov_by()),
    (adamw, adam_as_printed),
    (challenge_lars, lars_by(ratio)),
]  # fmt: skip
WRONG = [
    (critical_batch, lambda steps_8, steps_512: steps_8 / steps_512, "too "),
    (critical_batch, lambda steps_8, steps_512: 8 * (steps_8 / steps_512 - 1), "too "),
    (corrected, corrected_by(lambda rate, last: 1), "old rate"),
    (corrected, corrected_by(lambda rate, last: last / rate), "wrong way"),
    (corrected, corrected_by(lambda rate, last: rate), "is off by"),
    (corrected, corrected_by(sign=-1), "is off by"),
    (nesterov, nesterov_by(ahead=-1), "behind w"),
    (nesterov, nesterov_by(ahead=0), "plain momentum"),
    (nesterov, nesterov_by(mix=0.1), "1 − µ"),
    (nesterov, nesterov_by(stale=True), "before the update"),
    (adamw, from_zero, "not finite"),
    (adamw, from_two, "one too large"),
    (adamw, inside, "inside the root"),
    (adamw, uncorrected, "nothing is divided"),
    (adamw, as_the_talk_prints_it, "carried on"),
    (adamw, scaled_before, "is off by"),
    (adamw, l2, "Adam with L2"),
    (adamw, no_decay, "is off by"),
    (adamw, decay_without_rate, "is off by"),
    (adamw, not_in_place, "has not moved"),
    (adamw, spoils_g, "g is changed"),
    (challenge_lars, lars_by(lambda w, g, decay: norm(w) / norm(g)), "below the line"),
    (challenge_lars, lars_by(ratio, decayed=False), "missing in the step"),
    (challenge_lars, lars_by(lambda w, g, decay: 1), "plain descent"),
    (challenge_lars, lars_by(lambda w, g, decay: 1 / ratio(w, g, decay)), "upside down"),
    (challenge_lars, lars_by(lambda w, g, decay: abs(w) / (abs(g) + decay * abs(w))), "is off by"),
    (challenge_lars, one_norm_for_all, "is off by"),
]
