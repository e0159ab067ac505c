"""A challenge under a cap of workspace: a learner's convolution beside plans of micro-batches."""

import functools
import tracemalloc
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cnnlab.bench import measure
from cnnlab.bench.challenge import MINE
from cnnlab.bench.convolutions import arguments, in_micro_batches
from cnnlab.bench.microbatches import Plan
from cnnlab.check import exercise
from cnnlab.check.exercises.kinds import empty
from cnnlab.check.inputs import TRANSFORMED
from cnnlab.check.verdict import Verdict
from cnnlab.network import Place

ROUNDING = 100  # times that of a sum: what Winograd's transforms lose
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size


def challenge(
    operation: str,
    mine: Callable,
    place: Place,
    plans: Mapping[str, Plan],
    cap: float,
    *,
    repeats: int = 9,
) -> dict[str, measure.Timing] | None:
    """Prove a kernel with stride 1 and its workspace, then time it in turn with plans.

    Both work on a batch of the layer at `place`. Prints the verdict first; returns None, and times
    nothing, where the kernel is wrong, still empty, or allocates more than `cap` bytes.
    """
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not exercise(operation, mine, cases=TRANSFORMED, normwise=ROUNDING):
        return None
    n_images = sum(piece.n_images for piece in next(iter(plans.values())).pieces)
    arrays = arguments(operation, place, n_images)
    needed = allocated(mine, arrays)
    Verdict(
        needed <= cap + BUFFERS,
        f"{operation}: {needed:,} bytes of workspace, where the cap is {cap:,.0f}",
    ).report()
    if needed > cap + BUFFERS:
        return None
    calls = {
        name: functools.partial(in_micro_batches, operation, plan, *arrays)
        for name, plan in plans.items()
    }
    return measure.compare(calls | {MINE: functools.partial(mine, *arrays)}, repeats=repeats)


def allocated(kernel: Callable, arrays: Sequence[np.ndarray]) -> int:
    """The bytes of NumPy arrays that a kernel holds at its peak, besides its arguments.

    What compiled code allocates is not seen.
    """
    kernel(*arrays)  # what is kept from a first call is none
    tracemalloc.start()
    try:
        kernel(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
