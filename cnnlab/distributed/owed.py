"""What the compressors of all ranks keep from sum to sum, as arrays that a checkpoint holds."""

import numpy as np

from cnnlab.distributed.compressed import CompressedSum
from cnnlab.distributed.parcels import Parcels
from cnnlab.distributed.stream_sum import StreamSum

Sum = CompressedSum | StreamSum | Parcels
Kept = dict[str, np.ndarray]
MESSAGES = "messages of compressors"  # that each has sent: chances come from it, and densities


def own(of: Sum) -> dict[str, list[np.ndarray]]:
    """What this rank's compressors keep, by its name in a checkpoint."""
    found: dict[str, list[np.ndarray]] = {}
    for one in of.compressors:
        for name, array in one.state.items():
            found.setdefault(f"{name} of ranks", []).append(array)
    return found


def room(of: Sum, n: int) -> Kept:
    """Make the compressors for gradients of n numbers; zeros for what those of P ranks keep.

    By name, arrays (P, K, …) for K compressors of a rank; none where compressors keep nothing.
    """
    of.begin(n)
    kept = {
        name: np.zeros((of.comm.size, *np.shape(arrays)), arrays[0].dtype)
        for name, arrays in own(of).items()
    }
    if kept or any(one.by_chance for one in of.compressors):
        kept[MESSAGES] = np.zeros(of.comm.size)
    return kept


def load(of: Sum, kept: Kept) -> None:
    """Go on from there; `kept` has been made by `room`, or is empty."""
    for one in of.compressors if kept else ():
        one.n_messages = int(kept[MESSAGES][of.comm.rank])
    for name, arrays in own(of).items() if kept else ():
        for array, value in zip(arrays, kept[name][of.comm.rank], strict=True):
            array[...] = value


def store(of: Sum, kept: Kept) -> None:
    """Bring what all ranks keep to each of them; all call this."""
    for name, arrays in own(of).items() if kept else ():
        kept[name][:] = of.comm.allgather(np.stack(arrays))
    if kept:
        kept[MESSAGES][:] = of.comm.allgather(of.compressors[0].n_messages)
