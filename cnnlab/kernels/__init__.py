"""The strategies: one operation, one signature, many ways. KERNELS is the only list of them."""

import numpy as np

from cnnlab.kernels.contract import CONTRACT, Strategy
from cnnlab.runtime.arguments import one_of

KERNELS = {
    strategy.name: strategy
    for strategy in (
        Strategy("reference", "NumPy in float64, obviously right", np.float64, by_default=False),
        Strategy("loops", "Numba on one core, plain nested loops"),
        Strategy("vector", "Numba on one core used well"),
        Strategy("threads", "Numba on several cores, blocks of the batch", parallel=True),
        Strategy("partitioned", "MPI, blocks of each layer, then gathered", together=True),
        Strategy("device", "CUDA C, on a GPU or on the emulator", by_default=False),
    )
}
BASE = "loops"  # what the speedups of the others are over


def find(kernels: str | Strategy) -> Strategy:
    """The strategy of that name; a Strategy is returned as it is."""
    if isinstance(kernels, Strategy):
        return kernels
    one_of("kernels", kernels, KERNELS)
    return KERNELS[kernels]


__all__ = ["BASE", "CONTRACT", "KERNELS", "Strategy", "find"]
