"""Whether an optimiser is its formula, which is written down here in float64."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from cnnlab.check.verdict import Verdict

Slope = Callable[[np.ndarray, int], np.ndarray]  # the gradient at w, in step t = 0, 1, …
# Of gradients: beside the smallest, ε is large.
SIZES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)


def sgd(w, slope: Slope, rate: float, n_steps: int):
    """w − αg, n times."""
    for t in range(n_steps):
        w = w - rate * slope(w, t)
    return w


def momentum(w, slope: Slope, rate: float, n_steps: int, mu=0.9):
    """v = µv + g, then w − αv."""
    v = 0
    for t in range(n_steps):
        v = mu * v + slope(w, t)
        w = w - rate * v
    return w


def nesterov(w, slope: Slope, rate: float, n_steps: int, mu=0.9):
    """As momentum, with g taken at w − αµv; returned is where the next one would be taken."""
    v = 0
    for t in range(n_steps):
        v = mu * v + slope(w - rate * mu * v, t)
        w = w - rate * v
    return w - rate * mu * v


def adagrad(w, slope: Slope, rate: float, n_steps: int, epsilon=1e-10):
    """A = A + g², then w − αg / (√A + ε)."""
    squares = 0
    for t in range(n_steps):
        g = slope(w, t)
        squares = squares + g**2
        w = w - rate * g / (np.sqrt(squares) + epsilon)
    return w


def rmsprop(w, slope: Slope, rate: float, n_steps: int, beta=0.99, epsilon=1e-8):
    """A = βA + (1 − β)g², then w − αg / (√A + ε)."""
    squares = 0
    for t in range(n_steps):
        g = slope(w, t)
        squares = beta * squares + (1 - beta) * g**2
        w = w - rate * g / (np.sqrt(squares) + epsilon)
    return w


def adam(w, slope: Slope, rate: float, n_steps: int, betas=(0.9, 0.999), epsilon=1e-8):
    """Averages of g and g², each over 1 − βᵗ with t from 1, then w − αm̂ / (√v̂ + ε)."""
    mean = squares = 0
    for t in range(1, n_steps + 1):
        g = slope(w, t - 1)
        mean = betas[0] * mean + (1 - betas[0]) * g
        squares = betas[1] * squares + (1 - betas[1]) * g**2
        m, v = mean / (1 - betas[0] ** t), squares / (1 - betas[1] ** t)
        w = w - rate * m / (np.sqrt(v) + epsilon)
    return w


FORMULAS = {f.__name__: f for f in (sgd, momentum, nesterov, adagrad, rmsprop, adam)}


def path(optimizer, start: np.ndarray, slope: Slope, n_steps: int) -> np.ndarray:
    """The places (n_steps + 1, M) to which an optimiser steps from a start (M), in float64."""
    params = SimpleNamespace(flat=np.array(start, np.float64))
    optimizer.begin(params)
    places = [params.flat.copy()]
    for t in range(n_steps):
        optimizer.update(params, SimpleNamespace(flat=np.array(slope(params.flat, t))), 1)
        places.append(params.flat.copy())
    return np.array(places)


def direction(name: str, make: Callable, n_steps: int = 50) -> Verdict:
    """Whether `make(rate)` steps as FORMULAS[name] does, along gradients of any size."""
    noise = np.random.default_rng(0).normal(size=(n_steps, len(SIZES))) * SIZES

    def slope(w, t):
        return noise[t] * (1 + w)

    start = np.zeros(len(SIZES))
    expected = FORMULAS[name](start, slope, 0.01, n_steps)
    error = np.abs(path(make(0.01), start, slope, n_steps)[-1] - expected).max()
    close = bool(error < 1e-12)
    said = "as" if close else "not as"
    return Verdict(close, f"{name}: {n_steps} steps {said} its formula (differ by {error:.1g})")
