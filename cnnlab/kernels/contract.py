"""The contract: one operation, one signature, many strategies; and the checks that guard it.

A strategy is a module, or a folder, with the functions named in CONTRACT. These are raw: fast, easy
to read and to paste, and unchecked. `Strategy` checks every argument before it calls one.

NaN in, NaN out: a result whose formula reads a NaN is NaN, the loss too. The loss of an output is
-log(clip(p, 2**-24, 1)), where p is its float32 activation y if the label names it, and 1 - y if
not. A saturated y is within 2**-24 of 0 or 1, half a unit in the last place of 1, so the wrong one
costs 24 ln 2 = 16.6 on either side, in every strategy and however a batch is split. The gradient
stays y - onehot.

A strategy may offer more: FUSES, the form of the networks whose steps it fuses, or ANY, and
`fits(network)` where sizes matter; for those `loss_and_gradients` and `sgd_steps`, which takes no
workers if ALONE; `hardware()`, a line about what it runs on; `on_device(array)`, the array in the
device's memory; `resident_steps(…)`, training steps whose data stay there.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Sequence

import numpy as np

from cnnlab.runtime import failures, files, thread_pool

# Inputs first, the preallocated output last. Letters stand for sizes that must agree.
CONTRACT = {
    "conv_forward": {"x": "NCHW", "w": "FCKK", "b": "F", "z": "NFPQ"},
    "conv_backward_input": {"dz": "NFPQ", "w": "FCKK", "dx": "NCHW"},
    "conv_backward_weights": {"x": "NCHW", "dz": "NFPQ", "dw": "FCKK"},
    "conv_backward_bias": {"dz": "NFPQ", "db": "F"},
    "pool_forward": {"x": "NCHW", "w": "CKK", "b": "C", "z": "NCPQ"},
    "pool_backward_input": {"dz": "NCPQ", "w": "CKK", "dx": "NCHW"},
    "pool_backward_weights": {"x": "NCHW", "dz": "NCPQ", "dw": "CKK"},
    "pool_backward_bias": {"dz": "NCPQ", "db": "C"},
    "max_pool_forward": {"x": "NCHW", "z": "NCPQ"},
    "max_pool_backward": {"x": "NCHW", "dz": "NCPQ", "dx": "NCHW"},
    "dense_forward": {"x": "ND", "w": "OD", "b": "O", "z": "NO"},
    "dense_backward_input": {"dz": "NO", "w": "OD", "dx": "ND"},
    "dense_backward_weights": {"x": "ND", "dz": "NO", "dw": "OD"},
    "dense_backward_bias": {"dz": "NO", "db": "O"},
    "sigmoid": {"z": "...", "y": "..."},
    "sigmoid_backward": {"y": "...", "dy": "...", "dz": "..."},
    "relu": {"z": "...", "y": "..."},
    "relu_backward": {"y": "...", "dy": "...", "dz": "..."},
    "cross_entropy": {"y": "NO", "labels": "N", "dz": "NO"},
}
STRIDES = {"conv_forward": 1, "conv_backward_input": 1, "conv_backward_weights": 1}
STRIDES |= {"pool_forward": 4, "pool_backward_input": 4, "pool_backward_weights": 4}
STRIDES |= {"max_pool_forward": 4, "max_pool_backward": 4}  # no K: windows are as large as that

ANY = "any"  # FUSES where a strategy fuses the steps of every network


class Strategy:
    """One strategy: the functions of its module, each behind a check of its arguments.

    A wrong shape or value raises ValueError, a wrong dtype or type TypeError; the message names the
    function, the argument, what was expected and what came. `kernel(name)` is the raw function.
    """

    def __init__(
        self, name: str, summary: str, dtype=np.float32, module: object = None,
        parallel: bool = False, by_default: bool = True, together: bool = False,
    ):  # fmt: skip
        self.name, self.summary, self.dtype = name, summary, np.dtype(dtype)
        self.parallel = parallel  # whether it uses more than one thread
        self.together = together  # whether all ranks must call its functions together
        self.by_default = by_default and not together  # whether `bench` measures it unasked
        if module is not None:  # else the one of that name, see below
            self.module = module

    def __repr__(self) -> str:
        return f"<strategy {self.name}: {self.summary}>"

    @functools.cached_property
    def module(self):
        """The module, imported when first used: MPI or CUDA need not be there for the others."""
        module = importlib.import_module(f"cnnlab.kernels.{self.name}")
        files.keep_compiled()
        if "numba" in sys.modules:
            failures.tell_of_compiling()
        return module

    @property
    def lock(self):
        """What to hold during a call: parallel kernels run one at a time, and not in a fork."""
        if not self.parallel:
            return contextlib.nullcontext()
        thread_pool.refuse_forked_child()
        return thread_pool.LOCK

    def take(self, images: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """A batch: the images with the numbers `chosen`, copied, in the strategy's dtype."""
        return images[chosen].astype(self.dtype, copy=False)

    def fused(self, name: str, network):
        """The function `name`, if the strategy fuses the steps of this network; else None."""
        fits = getattr(self.module, "fits", lambda network: True)
        if getattr(self.module, "FUSES", None) not in (ANY, network.form) or not fits(network):
            return None
        return getattr(self.module, name, None)

    @property
    def alone(self) -> bool:
        """Whether its `sgd_steps` takes whole batches, with no workers to share them."""
        return getattr(self.module, "ALONE", False)

    def optional(self, name: str):
        """A function that a strategy may offer; None where it does not."""
        return getattr(self.module, name, None)

    def kernel(self, name: str):
        """The raw, unchecked function `name` of the strategy's module."""
        return getattr(self.module, name)

    def __getattr__(self, name: str):
        if name not in CONTRACT:
            own = self.__dict__.get("name")  # none yet while it is being copied
            raise AttributeError(f"strategy {own!r} has no {name!r}; it has {', '.join(CONTRACT)}")
        kernel = self.kernel(name)

        @functools.wraps(kernel)
        def checked(*arrays, **options):
            if name in STRIDES and len(arrays) == len(CONTRACT[name]) + 1 and not options:
                *arrays, options["stride"] = arrays
            check_arguments(name, arrays, self.dtype, **options)
            with self.lock:
                return kernel(*arrays, **options)

        self.__dict__[name] = checked
        return checked


def check_arguments(
    operation: str, arrays: Sequence, dtype, stride: int | None = None, **unknown
) -> None:
    """Check the arrays of one contract function; raise an error that says what is wrong."""
    shapes, wrong = CONTRACT[operation], None
    names = f"({', '.join(shapes)})"
    if unknown:
        wrong = f"its arrays {names} by position, got {', '.join(unknown)} by name"
    elif len(arrays) != len(shapes):
        wrong = f"{len(shapes)} arrays {names}, got {len(arrays)}"
    elif stride is not None and operation not in STRIDES:
        wrong = f"no stride, got {stride!r}"
    if wrong:
        raise TypeError(f"{operation}: expected {wrong}")
    sizes = {}
    for (argument, letters), array in zip(shapes.items(), arrays, strict=True):
        wanted = np.dtype(np.int64) if argument == "labels" else dtype
        check_array(f"{operation}: {argument}", array, wanted)
        if letters == "...":
            sizes.setdefault("shape", array.shape)
            if array.shape != sizes["shape"]:
                wrong = f"the shape of {next(iter(shapes))}, {sizes['shape']}, got {array.shape}"
                raise ValueError(f"{operation}: {argument}: expected {wrong}")
            continue
        axes = f"({', '.join(letters)}), got shape {array.shape}"
        if array.ndim != len(letters) or 0 in array.shape:
            wrong = f"{len(letters)} non-empty dimensions {axes}"
            raise ValueError(f"{operation}: {argument}: expected {wrong}")
        for letter, size in zip(letters, array.shape, strict=True):
            known, owner = sizes.setdefault(letter, (size, argument))
            if size != known:
                wrong = f"{letter}={known} as in {owner} {axes}"
                raise ValueError(f"{operation}: {argument}: expected {wrong}")
    if not arrays[-1].flags.writeable:
        wrong = "a writeable array, got a read-only one"
        raise ValueError(f"{operation}: {list(shapes)[-1]}: expected {wrong}")
    if operation in STRIDES:
        check_windows(operation, sizes, STRIDES[operation] if stride is None else stride)
    if "labels" in shapes:
        check_labels(arrays[1], sizes["O"][0])


def check_array(argument: str, array, dtype) -> None:
    """Check that `array` is a C-contiguous NumPy array of the dtype."""
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{argument}: expected a NumPy array of {np.dtype(dtype)}, got {type(array).__name__}"
        )
    if array.dtype != dtype:
        raise TypeError(f"{argument}: expected dtype {np.dtype(dtype)}, got {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{argument}: expected a C-contiguous array, got strides {array.strides}; "
            "try np.ascontiguousarray"
        )


def check_windows(operation: str, sizes: dict, stride: int) -> None:
    """Check that windows at this stride fit into H×W exactly P×Q times.

    They are K×K, or as large as the stride where the operation has no K.
    """
    if not isinstance(stride, int | np.integer) or stride < 1:
        raise ValueError(
            f"{operation}: stride: expected a whole number of at least 1, got {stride!r}"
        )
    letter, kernel = ("K", sizes["K"][0]) if "K" in sizes else ("stride", stride)
    for inner, outer in (("H", "P"), ("W", "Q")):
        (size, source), (count, target) = sizes[inner], sizes[outer]
        if size < kernel:
            raise ValueError(
                f"{operation}: {source}: expected {inner} of at least {letter}={kernel}, got {size}"
            )
        if count != (size - kernel) // stride + 1:
            formula = f"({inner}-K)//stride+1" if letter == "K" else f"{inner}//stride"
            group = f"{inner}={size}, " + (f"K={kernel}, " if letter == "K" else "")
            raise ValueError(
                f"{operation}: {target}: expected {outer}={formula}="
                f"{(size - kernel) // stride + 1} for {group}stride={stride}, got {count}"
            )


def check_labels(labels: np.ndarray, classes: int) -> None:
    """Check that every label is a class: 0 <= label < classes."""
    if labels.view(np.uint64).max() >= classes:  # as unsigned numbers, negative ones are huge
        first = int(((labels < 0) | (labels >= classes)).argmax())
        raise ValueError(
            f"labels: expected 0..{classes - 1}, got {labels[first]} at position {first}"
        )
