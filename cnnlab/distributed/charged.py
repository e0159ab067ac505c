"""Kernels that take virtual time by what they do: a run takes the same each time."""

from math import prod

import numpy as np

from cnnlab.kernels.contract import CONTRACT, Strategy

RATE, CALL = 2e9, 2e-6  # operations a second, and seconds a call: about one core's


class Charged(Strategy):
    """A strategy on a virtual rank: it computes, and lets the rank's clock go on by a model.

    A kernel takes `CALL` seconds and its multiply-adds, or else elements, over `RATE`.
    """

    def __init__(self, of: Strategy, comm):
        super().__init__(of.name, of.summary, of.dtype, of.module)
        self.comm = comm

    def fused(self, name: str, network) -> None:
        """Nothing is fused: each operation is charged for itself."""

    def kernel(self, name: str):
        """The raw function `name`; it is charged for when it has been called."""
        raw = super().kernel(name)

        def charged(*arrays, **options):
            result = raw(*arrays, **options)
            self.comm.compute(CALL + work(name, arrays) / RATE)
            return result

        return charged


def work(name: str, arrays: tuple[np.ndarray, ...]) -> int:
    """The multiply-adds of an operation of the contract on these arrays, or else elements."""
    by_name = dict(zip(CONTRACT[name], arrays, strict=False))
    weights = [by_name[key] for key in ("w", "dw") if key in by_name]
    outputs = [by_name[key] for key in ("z", "dz") if key in by_name]
    if weights and outputs:
        return outputs[0].size * prod(weights[0].shape[1:])
    return max(array.size for array in arrays[:-1] if array.dtype.kind == "f")
