"""The exercises of lesson 40: the report's figures, and a line of arithmetic for each."""

from cnnlab import data
from cnnlab.check.exercises import kinds


@kinds.number(
    "Add up the three layers. What does the whole network take?",
    "97.700 + 5.127 + 2.129 − 102.317.",
    rtol=0.01,
)
def too_many():
    """Each layer was timed in its own network (report, section 6.3): three runs, and a fourth."""
    printed = data.report()["sequential"]
    return sum(printed["layer_seconds"].values()) - printed["epoch_seconds"]


@kinds.number(
    "Efficiency is speedup by workers.",
    "2.72047 by 2.",
    rtol=5e-3,
)
def efficiency():
    """Above 1: the parallel program does less work than its base, or its data fit a cache."""
    return data.report()["openmp"]["speedup"][0] / 2


@kinds.number(
    "Amdahl: 1 / (s + (1 − s) / p). Which s gives 1.52734 for p = 2?",
    "s = 2 / 1.52734 − 1. Now put p = 4.",
    rtol=5e-3,
)
def four_ranks():
    """Measured were 1.02. A serial part cannot do that; messages can, or too few cores."""
    serial = 2 / data.report()["mpi"]["speedup"][0] - 1
    return 1 / (serial + (1 - serial) / 4)


@kinds.number(
    "Each layer's seconds by its speedup, and then the sum.",
    "97.700 / 1083 + 5.127 / 987 + 2.129 / 5507.",
    rtol=5e-3,
)
def epoch():
    """The network's own figure is 3.00 s, thirty times as long. What took the rest?"""
    layers = data.report()["sequential"]["layer_seconds"].values()
    pairs = zip(layers, data.report()["cuda"]["layer_speedups"], strict=True)
    return sum(seconds / times for seconds, times in pairs)


@kinds.number(
    "2.129 s by 5,507 and by 60,000 is the time of an image.",
    "6.44 ns, at 1.58 cycles a nanosecond.",
    rtol=0.02,
)
def cycles():
    """Ten for a loop over 216 products, which is in the listing, and each addition takes four."""
    return data.report()["cuda"]["layer_seconds"][2] / 60_000 * 1.58e9


@kinds.number(
    "What is left of the sum if the convolution takes no time?",
    "All three layers by the two others.",
    rtol=5e-3,
)
def limit():
    """So begin with the convolution; but the network's 34 times need the other layers, too."""
    convolution, *rest = data.report()["sequential"]["layer_seconds"].values()
    return (convolution + sum(rest)) / sum(rest)
