"""The strategies: one operation, one signature, many ways. KERNELS is the only list of them."""

import llvmlite.binding
import numba
import numpy as np

from cnnlab.kernels.contract import CONTRACT, Strategy

# LLVM is shy of 512-bit vectors on Intel servers; here they pay. Only if the reader has not chosen
# otherwise.
if numba.config.CPU_FEATURES is None and llvmlite.binding.get_host_cpu_features().get("avx512f"):
    features = llvmlite.binding.get_host_cpu_features().flatten()
    numba.config.CPU_FEATURES = f"{features},-prefer-256-bit"

KERNELS = {
    strategy.name: strategy
    for strategy in (
        Strategy("reference", "NumPy in float64, obviously right", np.float64),
        Strategy("loops", "Numba on one core, plain nested loops"),
        Strategy("vector", "Numba on one core used well"),
    )
}

__all__ = ["CONTRACT", "KERNELS", "Strategy"]
