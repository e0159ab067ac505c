"""cnnlab: one small convolutional neural network, parallelized in every way there is."""

import llvmlite.binding
import numba

__version__ = "0.1.0"


def _widen_vectors() -> None:
    """Let Numba use 512-bit vectors, of which LLVM is shy on Intel servers; here they pay.

    Unless the reader has chosen with NUMBA_CPU_FEATURES. Numba looks once, when the first function
    is decorated, so this cannot wait until the kernels are imported.
    """
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on this system
        return
    if numba.config.CPU_FEATURES is None and features.get("avx512f"):
        numba.config.CPU_FEATURES = f"{features.flatten()},-prefer-256-bit"


_widen_vectors()
