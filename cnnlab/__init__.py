"""cnnlab: one small convolutional neural network, parallelized in every way there is."""

import os
import sys

import llvmlite.binding

__version__ = "0.1.0"


def _widen_vectors() -> None:
    """Let Numba use 512-bit vectors, of which LLVM is shy on Intel servers; here they pay.

    Unless the reader has chosen with NUMBA_CPU_FEATURES. Numba looks once, when the first function
    is decorated, so this cannot wait until the kernels are imported; and it is not imported here,
    because the command line sets the number of its threads before that.
    """
    try:
        found = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on this system
        return
    if not found.get("avx512f"):
        return
    features = f"{found.flatten()},-prefer-256-bit"
    os.environ.setdefault("NUMBA_CPU_FEATURES", features)
    if (numba := sys.modules.get("numba")) and numba.config.CPU_FEATURES is None:
        numba.config.CPU_FEATURES = features


_widen_vectors()
