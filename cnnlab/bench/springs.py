"""Methods that average models on the simplest of losses, where theory says what they do.

The loss is ½ κ |x|² with the curvature κ; ranks run the methods of `cnnlab.distributed` as they
are, in the virtual world, with a parabola instead of a network.
"""

import types
from collections.abc import Sequence

import numpy as np

from cnnlab.distributed.elastic import Elastic
from cnnlab.distributed.gossip import Gossip
from cnnlab.distributed.graphs import disagreement
from cnnlab.ranks.virtual import World
from cnnlab.training import Sgd


class Parabola:
    """What a method trains in place of a network: float64 numbers x, and the gradient κ x.

    It has the names of `training.Replica` that methods ask for.
    """

    def __init__(self, start: np.ndarray, rate: float, curvature: float):
        self.params = types.SimpleNamespace(flat=np.array(start, np.float64))
        self.grads = types.SimpleNamespace(flat=np.zeros_like(self.params.flat))
        self.strategy = types.SimpleNamespace(together=False)
        self.optimizer, self.curvature = Sgd(rate), curvature

    def gradients(self, chosen: np.ndarray) -> float:
        """The loss, whatever the images; its gradient goes to `grads`."""
        x = self.params.flat
        self.grads.flat[:] = self.curvature * x
        return float(self.curvature * x @ x / 2)

    def update(self, n_images: int) -> None:
        """Step along `grads`."""
        self.optimizer.update(self.params, self.grads, 1)


def elastic_matrix(
    rate: float, moving_rate: float, curvature: float = 1.0, n_ranks: int = 1
) -> np.ndarray:
    """What a step does to (x, centre), as a matrix (2, 2), where all ranks are at the same x."""
    η, α, κ = rate, moving_rate, curvature
    return np.array([[1 - η * κ - α, α], [n_ranks * α, 1 - n_ranks * α]])


def growth(matrix: np.ndarray) -> float:
    """By which factor a matrix makes the worst direction longer each time: its spectral radius."""
    return float(abs(np.linalg.eigvals(matrix)).max())


def largest_moving_rate(rate: float, n_ranks: int = 1) -> float:
    """The α up to which P ranks with curvature 1 are stable: (4 − 2η) / (2 (P + 1) − P η).

    For one worker this is the (4 − 2η) / (4 − η) of Zhang, Choromanska and LeCun 2015; for rates η
    from 0 to 2. There an eigenvalue of `elastic_matrix` is −1.
    """
    return (4 - 2 * rate) / (2 * (n_ranks + 1) - n_ranks * rate)


def elastic_path(
    rate: float, moving_rate: float, n_steps: int, curvature: float = 1.0, n_ranks: int = 1
) -> np.ndarray:
    """Where the method `elastic` takes (x, centre), float64 (n_steps + 1, 2), from (1, −0.7)."""

    def program(comm):
        of, method = Parabola([1.0], rate, curvature), Elastic(comm, 1, moving_rate)
        method.enter(of)
        method.centre[:] = -0.7
        places = [(of.params.flat[0], method.centre[0])]
        for _ in range(n_steps):
            method.step(of, np.arange(n_ranks))
            places.append((of.params.flat[0], method.centre[0]))
        return np.array(places)

    return World(n_ranks).run(program)[0]


def measured_growth(places: np.ndarray) -> float:
    """By which factor the later half of a path grew at each step, in the mean."""
    sizes = np.linalg.norm(places, axis=1)
    middle = len(sizes) // 2
    return float((sizes[-1] / sizes[middle]) ** (1 / (len(sizes) - 1 - middle)))


def gossip_path(graph: str, n_ranks: int, n_meetings: int, seed: int = 0) -> np.ndarray:
    """How far ranks disagree before and after each meeting, float64 (n_meetings + 1).

    The method `gossip` mixes 100 random numbers a rank, which nothing else changes.
    """
    starts = np.random.default_rng(seed).standard_normal((n_ranks, 100))

    def program(comm) -> Sequence[np.ndarray]:
        of, method = Parabola(np.zeros(100), 0.0, 0.0), Gossip(comm, 1, graph)
        method.make_room(of)
        method.kept["model of ranks"][:] = starts
        method.enter(of)
        models = [of.params.flat.copy()]
        for _ in range(n_meetings):
            method.step(of, np.arange(n_ranks))
            models.append(of.params.flat.copy())
        return models

    by_rank = np.array(World(n_ranks).run(program))
    return np.array([disagreement(models) for models in by_rank.swapaxes(0, 1)])
