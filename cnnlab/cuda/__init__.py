"""CUDA C: the sources of the kernels, and the two devices that run them.

`load("conv")` gives the kernels of conv.cu on an NVIDIA GPU if there is one, through CuPy, and on
the emulator otherwise. Both launch on NumPy arrays.
"""

import functools
from pathlib import Path

SOURCES = Path(__file__).parent


@functools.cache
def gpu() -> tuple[bool, str]:
    """Whether there is a GPU to use, and one line about it."""
    try:
        import cupy
    except ImportError:
        return False, "no GPU: CuPy is not installed, so the emulator runs the kernels on this CPU"
    try:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return False, f"no GPU ({error}), so the emulator runs the kernels on this CPU"
    return True, f"GPU: {name}"


@functools.cache
def load(name: str):
    """The kernels of one of the sources, ready to launch; ValueError for an unknown name."""
    names = sorted(file.stem for file in SOURCES.glob("*.cu"))
    if name not in names:
        raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")
    return compiled((SOURCES / f"{name}.cu").read_text(encoding="utf-8"))


def compiled(source: str):
    """The kernels of any CUDA C source, on the device that is there."""
    if gpu()[0]:
        from cnnlab.cuda.cupy_device import OnGpu

        return OnGpu(source)
    from cnnlab.cuda.emulator import Emulated

    return Emulated(source)
