"""CUDA C on an NVIDIA GPU, through CuPy."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from itertools import chain

import cupy
import numpy as np

from cnnlab.cuda.arguments import overlapping
from cnnlab.cuda.launcher import Launcher

compiled = functools.lru_cache(maxsize=64)(cupy.cuda.compiler.compile_using_nvrtc)
FAULTS = (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError)


class OnGpu(Launcher):
    """The kernels of one CUDA C source, compiled by NVRTC, launched on NumPy or CuPy arrays."""

    def __init__(self, source: str):
        super().__init__(source)
        self._module = cupy.cuda.function.Module()
        try:  # not cupy.RawModule, which takes numbers below 2**-126 for zero (-ftz=true)
            code, _ = compiled(source, ("-std=c++17",))
        except cupy.cuda.compiler.CompileException as error:
            raise RuntimeError(f"the CUDA source does not compile:\n{error}") from error
        self._module.load(code)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        """The call that launches on the current stream, without waiting."""
        if any(isinstance(a, np.ndarray) for a in arguments):
            raise TypeError(
                f"{name}: expected CuPy arrays, which stay on the GPU, got NumPy arrays"
            )
        kernel = self._module.get_function(name)
        launch = tuple(sizes[:3]), tuple(sizes[3:]), tuple(arguments)
        return functools.partial(kernel, *launch, shared_mem=shared)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        there = on_gpu(arguments)
        try:
            self._prepare(name, sizes, there, shared)()
            if any(isinstance(argument, np.ndarray) for argument in arguments):
                cupy.cuda.runtime.deviceSynchronize()
        except FAULTS as error:
            raise RuntimeError(f"{name}: {error}") from error
        kinds = self.parameters[name]
        for parameter, here, result in zip(kinds, arguments, there, strict=True):
            if isinstance(here, np.ndarray) and not parameter.const:
                here[...] = result.get()


@functools.cache
def hold() -> Callable[[], None]:
    """A call that keeps the GPU busy for about a millisecond: a chain of 500,000 multiply-adds."""
    source = """extern "C" __global__ void spin(float* x, int n)
{ float sum = x[0]; for (int i = 0; i < n; i++) sum = 0.5f * sum + 1; x[0] = sum; }"""
    return OnGpu(source).prepare("spin", (1,), (1,), cupy.zeros(1, np.float32), 500_000)


def on_gpu(arguments: list) -> list:
    """The arguments with NumPy arrays copied to the GPU; those that overlap do so there."""
    there = list(arguments)
    hosts = [i for i, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    for group in overlapping([arguments[i] for i in hosts]):
        arrays = [arguments[hosts[i]] for i in group]
        first = min(a.ctypes.data for a in arrays)
        room = cupy.empty(max(a.ctypes.data + a.nbytes - first for a in arrays), np.uint8)
        for i, array in zip(group, arrays, strict=True):
            place = room.data + (array.ctypes.data - first)
            there[hosts[i]] = cupy.ndarray(array.shape, array.dtype, memptr=place)
            there[hosts[i]].set(array)
    return there


def capture(stages: Sequence[Sequence[Callable[[], None]]]) -> Callable[[], None]:
    """The calls as a CUDA graph, replayed with one launch.

    Each call of a stage is captured on a stream of its own; the streams join at the stage's end.
    """
    for call in chain.from_iterable(stages):
        call()  # compiles and loads the kernels, which a capture may not do
    main, *others = streams = [cupy.cuda.Stream() for _ in range(max(map(len, stages)))]
    with main:
        main.begin_capture()
        try:
            for stage in stages:
                begun = main.record()
                for call, stream in zip(stage, streams, strict=False):
                    with stream:
                        stream.wait_event(begun)
                        call()
                for stream in others[: len(stage) - 1]:
                    main.wait_event(stream.record())
        except BaseException:
            with contextlib.suppress(*FAULTS):  # what broke the capture says more than its end
                main.end_capture()
            raise
        captured = main.end_capture()

    def replay() -> None:
        captured.launch(cupy.cuda.get_current_stream())  # after what was asked of it before

    replay.keeps = stages, streams  # the graph holds only the addresses of their arrays
    return replay
