"""cnnlab: one small convolutional neural network, parallelized in every way there is."""

import importlib.util
import os
import sys

from cnnlab.runtime import failures

if sys.argv[:1] == ["-m"]:  # cnnlab is run: an interrupt is one line, also while modules load
    failures.stop_in_one_line()

__version__ = "0.1.0"


def _widen_vectors() -> None:
    """Let Numba use 512-bit vectors, of which LLVM is shy on Intel servers; here they pay.

    Unless the reader has chosen with NUMBA_CPU_FEATURES, or with NUMBA_CPU_NAME another processor,
    whose own features then count. Numba looks once, when the first function is decorated, so this
    cannot wait until the kernels are imported; and it is not imported here, because the command
    line sets the number of its threads before that.
    """
    if os.environ.get("NUMBA_CPU_NAME"):
        os.environ.setdefault("NUMBA_CPU_FEATURES", "")
        return
    import llvmlite.binding

    try:
        result = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on this system
        return
    if not result.get("avx512f"):
        return
    features = f"{result.flatten()},-prefer-256-bit"
    os.environ.setdefault("NUMBA_CPU_FEATURES", features)
    if "numba" in sys.modules:
        import numba  # waits for a thread that is just importing it

        if numba.config.CPU_FEATURES is None:
            numba.config.CPU_FEATURES = features


def _unroll_once() -> None:
    """Keep LLVM from unrolling loops whose length it does not know: compiling takes half as long.

    Numba optimises a function again in each function that calls it, and a parallel loop three times
    more; what was unrolled, and the loops for what is left over, would be unrolled each time. No
    kernel here gains from it. Only for those LLVMs that are known to have these options, because
    others would end the process.
    """
    import llvmlite.binding

    if 15 <= llvmlite.binding.llvm_version_info[0] <= 22:
        for option in ("-unroll-runtime=false", "-unroll-max-upperbound=1"):
            llvmlite.binding.set_option("cnnlab", option)


if importlib.util.find_spec("llvmlite"):  # else a lesson's setup cell is about to install it
    _widen_vectors()
    _unroll_once()
