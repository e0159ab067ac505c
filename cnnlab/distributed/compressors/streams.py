"""Fewer numbers, added up as streams: what each rank sends is chosen from its whole gradient."""

import numpy as np

from cnnlab.distributed.compressors.topk import TopK, select

Stream = tuple[np.ndarray, np.ndarray]


class Streams(TopK):
    """The largest numbers and their places; sums of them are exact, and not compressed again.

    TopK SGD (Renggli and others 2019).
    """

    streams = True

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places, int32 (k), ascending, and float32 (k) to send; the rest stays in `residual`.

        gradient float32 (n), summed over this rank's share of `n_images`, which `n_ranks` share.
        """
        self.n_messages += 1
        self.residual += gradient
        places, values = largest(self.residual, self.k)
        self.residual[places] = 0
        return places, values


def largest(values: np.ndarray, k: int) -> Stream:
    """The places, int32 (k), ascending, and the values of the k largest by absolute value."""
    places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
    select(values, places, chosen)
    return places, chosen
