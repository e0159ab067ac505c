"""Graphs of ranks that gossip, as mixing matrices: who averages whose model, with which weight.

Row i of a matrix W (P, P) has the weights with which rank i averages the models of all ranks, zero
for those that are not its neighbours. Rows and columns add up to 1 (doubly stochastic): so ranks
that agree stay as they are, and the mean over all ranks stays where it is.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12  # an eigenvalue below it is zero


class Graph(NamedTuple):
    """A line about a graph, and its function of the number of ranks that returns its matrices.

    They are used in turn, one each time that ranks meet.
    """

    summary: str
    matrices: Callable[[int], list[np.ndarray]]


def ring(n: int) -> list[np.ndarray]:
    """Each rank with the one before it and the one after it."""
    return [metropolis(n, [(i, (i + 1) % n) for i in range(n)])]


def grid(n: int) -> list[np.ndarray]:
    """Rows and columns, as nearly as many of each as n allows; up, down, left and right."""
    rows = max(r for r in range(1, math.isqrt(n) + 1) if n % r == 0)
    columns = n // rows
    across = [(i, i + 1) for i in range(n) if (i + 1) % columns]
    return [metropolis(n, across + [(i, i + columns) for i in range(n - columns)])]


def exponential(n: int) -> list[np.ndarray]:
    """Each rank receives from those 1, 2, 4, … before it, all with the same weight."""
    hops = [0, *powers(n)]
    return [sum(np.roll(np.eye(n), -hop, axis=1) for hop in hops) / len(hops)]


def one_peer(n: int) -> list[np.ndarray]:
    """Those of `exponential` one after the other: half of the own model, half of one other."""
    return [(np.eye(n) + np.roll(np.eye(n), -hop, axis=1)) / 2 for hop in powers(n) or [0]]


def powers(n: int) -> list[int]:
    """The powers of two below n."""
    return [1 << k for k in range((n - 1).bit_length())]


def metropolis(n: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """A doubly stochastic matrix (n, n) of an undirected graph.

    An edge weighs 1 / (1 + the larger of the degrees at its ends); a rank itself what is left
    (Xiao and Boyd, Fast linear iterations for distributed averaging, 2004).
    """
    linked = np.zeros((n, n), bool)
    for i, j in edges:
        linked[i, j] = linked[j, i] = i != j
    degree = linked.sum(1)
    weights = linked / (1.0 + np.maximum.outer(degree, degree))
    return weights + np.diag(1 - weights.sum(1))


GRAPHS = {
    "ring": Graph("the ranks before and after", ring),
    "grid": Graph("in rows and columns", grid),
    "exponential": Graph("the ranks 1, 2, 4, … before", exponential),
    "one-peer": Graph("these one after the other", one_peer),
}


def contraction(matrices: list[np.ndarray]) -> float:
    """By which factor each meeting shrinks what ranks differ in, at worst and in the long run.

    The second largest absolute eigenvalue λ of the product of all matrices, its root taken for one.
    """
    product = np.linalg.multi_dot([*matrices, np.eye(len(matrices[0]))])
    others = np.sort(abs(np.linalg.eigvals(product)))[:-1]
    largest = others.max(initial=0.0)
    return float(largest ** (1 / len(matrices))) if largest > ROUNDING else 0.0


def spectral_gap(matrices: list[np.ndarray]) -> float:
    """1 − λ, see `contraction`: 0 where ranks never agree, 1 where they do at once."""
    return 1 - contraction(matrices)


def disagreement(models: np.ndarray) -> float:
    """The consensus error of models (P, n): the root of the mean square distance to their mean."""
    return float(np.sqrt(np.square(models - models.mean(0)).sum(1).mean()))
