"""The strategies: one operation, one signature, many ways. KERNELS is the only list of them."""

import numpy as np

from cnnlab.kernels.contract import CONTRACT, Strategy

KERNELS = {
    strategy.name: strategy
    for strategy in (
        Strategy("reference", "NumPy in float64, obviously right", np.float64),
        Strategy("loops", "Numba on one core, plain nested loops"),
        Strategy("vector", "Numba on one core used well"),
        Strategy("threads", "Numba on several cores, blocks of the batch", parallel=True),
        Strategy("ranks", "MPI, blocks of each layer, then gathered", by_default=False),
        Strategy("device", "CUDA C, on a GPU or on the emulator", by_default=False),
    )
}

__all__ = ["CONTRACT", "KERNELS", "Strategy"]
