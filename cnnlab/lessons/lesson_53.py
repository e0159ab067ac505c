"""The exercises of lesson 53."""

import numpy as np

from cnnlab.check.directions import SIZES
from cnnlab.check.exercises import kinds

BETAS, EPSILON, N_STEPS = (0.9, 0.999), 1e-8, 12


def adams(gradients, rate, *, first=1, inside=False, corrected=True, carried=False, early=False):
    """Where Adam gets from zero in float64: right, or with one of the usual mistakes."""
    w = m = v = 0.0
    for t, g in enumerate(gradients, first):
        m = BETAS[0] * m + (1 - BETAS[0]) * (rate * g if early else g)
        v = BETAS[1] * v + (1 - BETAS[1]) * g**2
        by = (1 - BETAS[0] ** t, 1 - BETAS[1] ** t) if corrected else (1, 1)
        m_hat, v_hat = m / by[0], v / by[1]
        if carried:
            m, v = m_hat, v_hat
        root = np.sqrt(v_hat + EPSILON) if inside else np.sqrt(v_hat) + EPSILON
        w = w - (1 if early else rate) * m_hat / root
    return w


ADAMS_MISTAKES = {
    "ε lies inside the root": {"inside": True},
    "nothing is divided by 1 − βᵗ": {"corrected": False},
    "the corrected averages are carried on": {"carried": True},
    "t is one too large": {"first": 2},
}


def as_adam(update) -> str:
    """What is wrong with an update of Adam's, in words; nothing if it is right."""
    gradients = np.random.default_rng().normal(size=(N_STEPS, len(SIZES))) * SIZES
    w, m, v = np.zeros((3, len(SIZES)))
    for t, g in enumerate(gradients, 1):
        given = g.copy()
        update(w, m, v, given, t, 0.01)
        if not np.array_equal(given, g):
            return "g is changed, and should be left as it is"
    return told(
        w, adams(gradients, 0.01), ADAMS_MISTAKES, lambda how: adams(gradients, 0.01, **how)
    )


def nesterovs(w, slope, rate, mu, *, ahead=1, mix=1.0, stale=False, n_steps=N_STEPS):
    """Where Nesterov's momentum gets from w in float64: right, or with a usual mistake."""
    v = 0 * w
    for _ in range(n_steps):
        new = mu * v - mix * rate * slope(w + ahead * mu * v)
        w, v = w + (v if stale else new), new
    return w


NESTEROVS_MISTAKES = {
    "the gradient is taken behind w, not ahead of it": {"ahead": -1},
    "the gradient is taken at w, which is plain momentum": {"ahead": 0},
    "the gradient is weighed by 1 − µ": {"mix": 0.1},
    "w steps along the velocity before the update": {"stale": True},
}


def as_nesterov(update) -> str:
    """What is wrong with an update of Nesterov's, in words; nothing if it is right."""
    rng = np.random.default_rng()
    start, steep = rng.normal(size=5), rng.uniform(1, 20, 5)
    w, v = start.copy(), np.zeros(5)
    for _ in range(N_STEPS):
        update(w, v, lambda at: steep * at, 0.02, 0.9)
    way = start, lambda at: steep * at, 0.02, 0.9
    return told(w, nesterovs(*way), NESTEROVS_MISTAKES, lambda how: nesterovs(*way, **how))


def told(got, expected, mistakes, make) -> str:
    """Nothing if two results agree; else the mistake that leads there, or how far they differ."""
    if np.allclose(got, expected, rtol=1e-6, atol=1e-14):
        return ""
    for words, how in mistakes.items():
        if np.allclose(got, make(how), rtol=1e-6, atol=1e-14):
            return words
    if not np.any(got):
        return "w has not moved: change it in place"
    if not np.isfinite(got).all():
        return f"w is not finite after {N_STEPS} steps: is something divided by 1 − β⁰?"
    return f"after {N_STEPS} steps w is off by up to {np.abs(got - expected).max():.2g}"


@kinds.number(
    "Write down m and v after the first gradient g, both averages having begun at zero.",
    "m is 0.1 g and v is 0.001 g². What is m / √v, where m̂ / √v̂ is 1?",
    rtol=1e-3,
)
def first_step():
    """0.1 over the root of 0.001: the average of squares lags further behind."""
    return (1 - 0.9) / (1 - 0.999) ** 0.5


@kinds.formula(
    lambda rng: {
        "n_images": int(rng.integers(1000, 60_000)),
        "batch": int(rng.integers(1, 64)),
        "factor": int(rng.integers(2, 5)),
        "epochs": int(rng.integers(1, 5)),
    },
    "Epoch number e = 0, 1, … has batches of batch · factor^e images.",
    "The last batch of an epoch may be smaller, but it is a step: round up.",
)
def steps(n_images, batch, factor, epochs):
    """A geometric series, rounded up epoch by epoch: the later epochs are nearly free."""
    return sum(-(-n_images // (batch * factor**e)) for e in range(epochs))


@kinds.tested(
    as_nesterov,
    "Where does the velocity lead, before this gradient is known? Call slope there.",
    "v *= momentum first: then the place is w + v.",
    tells=True,
)
def nesterov(w, v, slope, rate, momentum):
    """The sign matters: w + µv is where the velocity leads."""
    v *= momentum
    v -= rate * slope(w + v)
    w += v


@kinds.tested(
    as_adam,
    "m and v are kept as they are; what is divided by 1 − βᵗ is only used for this step.",
    "Take the root first, then add ε.",
    tells=True,
)
def adam(w, m, v, g, t, rate):
    """In place, with t from 1 and ε outside the root."""
    m += (1 - 0.9) * (g - m)
    v += (1 - 0.999) * (g**2 - v)
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    w -= rate * m_hat / (v_hat**0.5 + 1e-8)
