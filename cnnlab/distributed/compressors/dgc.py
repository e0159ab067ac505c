"""Deep Gradient Compression: top-k that keeps its momentum (Lin and others 2018)."""

import numpy as np

from cnnlab.distributed.compressors.streams import Stream, Streams, largest


class DeepGradientCompression(Streams):
    """Top-k with error feedback of velocities instead of gradients; train it with plain sgd.

    Lin and others 2018, section 3: each rank clips its gradient, adds it to a velocity of its own,
    and this to what is owed, the `residual`. What is sent is zeroed in both: a velocity that went
    on would push again where its push has arrived (momentum factor masking). `argument` is a
    density, or a density and the messages of a stage of its warm-up, as "0.01,50": of the first 50
    a quarter of the numbers are sent, of the next 50 a sixteenth, and so on down to the density.
    A gradient is clipped where its norm, for the mean over all images, is above clip / √n_ranks;
    None: never.
    """

    def __init__(self, n, seed=0, argument=0.01, momentum=0.9, clip: float | None = 2.0):
        density, comma, stage = str(argument).partition(",")
        if comma and not stage.isdecimal():
            raise ValueError(f"compress: expected messages of a stage after the comma, got {stage}")
        super().__init__(n, seed, density)
        self.stage, self.momentum, self.clip = int(stage or 0), momentum, clip
        self.velocity = np.zeros(n, np.float32)
        self.state["velocity"] = self.velocity

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places, int32 (k), ascending, and the velocities added up there, float32 (k).

        gradient float32 (n), summed over this rank's share of `n_images`, which `n_ranks` share.
        """
        k = self.places_to_send()
        self.n_messages += 1
        self.velocity *= self.momentum
        self.velocity += self.clipped(gradient, n_images, n_ranks)
        self.residual += self.velocity
        places, values = largest(self.residual, k)
        self.residual[places] = 0
        self.velocity[places] = 0
        return places, values

    def places_to_send(self) -> int:
        """How many numbers the next message has: fewer from stage to stage of the warm-up."""
        if not self.stage:
            return self.k
        warm = round(self.n * 0.25 ** (1 + self.n_messages // self.stage))
        return min(self.n, max(self.k, warm))

    def clipped(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> np.ndarray:
        """The gradient, no longer than one rank's part of the longest that is let through.

        The sum of as many independent ones is longer by the root of their number, so each is
        shorter by as much.
        """
        if self.clip is None:
            return gradient
        most, norm = self.clip * n_images / n_ranks**0.5, float(np.linalg.norm(gradient))
        return gradient if norm <= most else gradient * np.float32(most / norm)
