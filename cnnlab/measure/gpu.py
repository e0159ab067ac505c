"""Figures of GPUs' data sheets, for models of what kernels should take there."""

from typing import NamedTuple


class Gpu(NamedTuple):
    """Figures of a data sheet: multiprocessors, their cores, float32 FLOP/s, DRAM's bytes/s.

    `cache` is the bytes of its L2.
    """

    multiprocessors: int
    cores: int
    flops: float
    bandwidth: float
    cache: int

    @property
    def clock(self) -> float:
        """Cycles per second: a core does one multiply-add, two FLOP, in each."""
        return self.flops / (2 * self.multiprocessors * self.cores)


# NVIDIA's data sheets: T4 (2019), L4 (2023), A100 SXM 40 GB (2020), H100 SXM (2023).
GPUS = {
    "T4": Gpu(40, 64, 8.1e12, 320e9, 4 << 20),
    "L4": Gpu(58, 128, 30.3e12, 300e9, 48 << 20),
    "A100": Gpu(108, 64, 19.5e12, 1555e9, 40 << 20),
    "H100": Gpu(132, 128, 67e12, 3350e9, 50 << 20),
}
