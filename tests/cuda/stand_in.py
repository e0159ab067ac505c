"""A stand-in for CuPy, with the emulator as its GPU: what the GPU's side does, without a GPU.

It is strict as CuPy is: its arrays are no NumPy arrays, and take none; while a stream is captured,
nothing runs.
"""

from types import ModuleType, SimpleNamespace

import numpy as np

from cnnlab.cuda.emulator import Emulated


class CUDARuntimeError(RuntimeError):
    pass


class Array:
    """An array whose elements are elsewhere, until `get` fetches them."""

    def __init__(self, array):
        self._array = np.asarray(array)

    def __getattr__(self, name):
        if name in ("dtype", "shape", "size", "ndim", "nbytes", "strides", "flags"):
            return getattr(self._array, name)
        if name in ("astype", "copy", "reshape", "sum"):
            return of_numpy(getattr(self._array, name))
        raise AttributeError(name)

    @property
    def __cuda_array_interface__(self):
        return self._array.__array_interface__

    def __array__(self, *options, **more):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __len__(self):
        return len(self._array)

    def __float__(self):
        return float(self._array)

    def __getitem__(self, key):
        return Array(self._array[key])

    def __setitem__(self, key, value):
        if isinstance(value, np.ndarray):
            raise TypeError("unsupported type numpy.ndarray")
        self._array[key] = bare(value)

    def get(self):
        return self._array.copy()

    def set(self, array):
        self._array[...] = array


def bare(value):
    """The NumPy array of an Array; anything else as it is."""
    return value._array if isinstance(value, Array) else value


class Stream:
    """A stream; `captured` are the calls of a capture, or None, and `noted` what was launched."""

    current: "Stream | None" = None
    captured: list | None = None
    noted: tuple = ()

    def __enter__(self):
        self.before, Stream.current = Stream.current, self

    def __exit__(self, *error):
        Stream.current = self.before

    def record(self):
        return self

    def wait_event(self, event):
        pass

    def begin_capture(self):
        Stream.captured = []

    def end_capture(self):
        calls, Stream.captured = Stream.captured, None
        if "broken" in calls:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")

        def launch(stream):
            Stream.noted += (stream,)
            for call in calls:
                call()

        return SimpleNamespace(launch=launch)


class Event:
    """An event; `recorded` counts all of them, and from one to the next it is 2 ms."""

    recorded = 0

    def record(self):
        Event.recorded += 1
        self.at = Event.recorded

    def synchronize(self):
        pass


class Module:
    """The kernels of a source, on the emulator."""

    def load(self, code):
        self._kernels = Emulated(code)

    def get_function(self, name):
        def launch(grid, block, arguments, shared_mem=0):
            assert not any(isinstance(argument, np.ndarray) for argument in arguments)
            given = name, grid, block, *map(bare, arguments)

            def call():
                self._kernels.launch(*given, shared=shared_mem)

            call() if Stream.captured is None else Stream.captured.append(call)

        return launch


def cupy() -> ModuleType:
    """The module, with a GPU called Tesla T4."""
    made = ModuleType("cupy")
    for name in ("arange", "asarray", "ascontiguousarray", "empty", "empty_like", "zeros"):
        setattr(made, name, of_numpy(getattr(np, name)))
    made.zeros_like, made.ndarray = of_numpy(np.zeros_like), Array
    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        deviceSynchronize=lambda: None,
        getDeviceProperties=lambda number: {"name": b"Tesla T4"},
    )
    made.cuda = SimpleNamespace(
        Stream=Stream,
        Event=Event,
        get_elapsed_time=lambda begin, end: 2.0 * (end.at - begin.at),
        get_current_stream=lambda: "the current stream",
        runtime=runtime,
        driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (RuntimeError,), {})),
        function=SimpleNamespace(Module=Module),
        compiler=SimpleNamespace(
            CompileException=type("CompileException", (Exception,), {}),
            compile_using_nvrtc=lambda source, options: (source, None),
        ),
        nvrtc=SimpleNamespace(getVersion=lambda: (12, 9)),
    )
    return made


def of_numpy(function):
    """NumPy's function, for Arrays."""
    return lambda *given, **how: Array(function(*map(bare, given), **how))
