"""One parameter server, several, and two levels: bytes at the busiest, and images through."""

from typing import NamedTuple

import numpy as np

from cnnlab.distributed.serving import Serving
from cnnlab.distributed.trial import Counting
from cnnlab.measure.server_runs import CORE, NETWORK, Slope


class Passed(NamedTuple):
    """Images in a virtual second, and bytes in and out of the busiest rank, for each worker's turn.

    A turn is one gradient of each worker.
    """

    images: float
    busiest: float


def passed(
    n_workers: int, n_parameters: int, staleness: int | str = 0, *, images: int = 8,
    n_each: int = 4, network: str = NETWORK, **levels,
) -> Passed:  # fmt: skip
    """What passes where workers send `n_each` gradients of so many images, and nobody computes.

    `levels` is `servers` or `groups`, as of `Serving`, or nothing for one server. Workers take
    their time for a gradient; servers are charged for messages alone. Parameters are float64.
    """
    n_servers = levels.get("servers", 1) + levels.get("groups", 0)
    world = Counting(n_servers + n_workers, network)
    n = images * n_workers * n_each

    def program(comm) -> None:
        of = Slope(0.0, images * n_workers, np.zeros(n_parameters))
        of.gradients = lambda chosen: comm.compute(CORE.seconds(len(chosen))) or 0.0
        method = Serving(comm, staleness, **levels)
        method.steps(of, np.zeros(n, np.int64))
        method.close()

    world.run(program)
    busiest = (world.sent.sum(0) + world.sent.sum(1)).max()
    return Passed(n / world.seconds, float(busiest) / n_each)
