"""What a message costs in the virtual world."""

import math
import re
from dataclasses import dataclass

UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
SHORT = (1, "s"), (1e3, "ms"), (1e6, "µs")
LARGE = (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")
TEXT = re.compile(r"([\d.]+) ?(ns|us|µs|ms|s), ?([\d.]+) ?([kMG]?)B/s")


@dataclass(frozen=True)
class Link:
    """Between any two ranks: `latency` in seconds, `bandwidth` in bytes/s, each way on its own.

    `call` is what a send or receive costs the rank itself, in seconds. Messages of more than
    `eager` bytes wait until the receiver is there (MPI's rendezvous); shorter ones are sent off.
    """

    latency: float = 10e-6
    bandwidth: float = 1e9
    call: float = 0.5e-6
    eager: int = 65536

    def __post_init__(self):
        for name in ("latency", "call", "eager"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")
        if not 0 < self.bandwidth <= math.inf:
            raise ValueError(f"bandwidth: expected a positive number, got {self.bandwidth!r}")

    @classmethod
    def parse(cls, text: str) -> "Link":
        """A link from a text such as "10us,1GB/s". Raises ValueError for any other."""
        found = TEXT.fullmatch(text.strip())
        if not found:
            raise ValueError(f"link: expected a text such as 10us,1GB/s, got {text!r}")
        latency, unit, bandwidth, scale = found.groups()
        return cls(float(latency) * UNITS[unit], float(bandwidth) * BYTES[scale])

    def __str__(self) -> str:
        scale, unit = next(of for of in LARGE if self.bandwidth >= of[0] or of[0] == 1)
        factor, name = next(of for of in SHORT if self.latency * of[0] >= 1 or of[0] == 1e6)
        bandwidth = f"{self.bandwidth / scale:.3g} {unit}"
        return f"links of {factor * self.latency:.3g} {name} and {bandwidth}"

    def sending(self, n_bytes: int) -> float:
        """How long a message of n bytes keeps the link busy, in seconds."""
        return n_bytes / self.bandwidth
