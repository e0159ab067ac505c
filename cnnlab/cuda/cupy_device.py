"""CUDA C on an NVIDIA GPU, through CuPy."""

import cupy
import numpy as np

from cnnlab.cuda.launcher import Launcher


class OnGpu(Launcher):
    """The kernels of one CUDA C source, compiled by NVRTC, to be launched on NumPy arrays."""

    def __init__(self, source: str):
        super().__init__(source)
        self._module = cupy.RawModule(code=source, options=("-std=c++17",))

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        there = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        kernel = self._module.get_function(name)
        try:
            kernel(tuple(sizes[:3]), tuple(sizes[3:]), tuple(there), shared_mem=shared)
            cupy.cuda.runtime.deviceSynchronize()
        except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
            raise RuntimeError(f"{name}: {error}") from error
        kinds = self.parameters[name]
        for (_, const), here, result in zip(kinds, arguments, there, strict=True):
            if isinstance(here, np.ndarray) and not const:
                here[...] = result.get()
