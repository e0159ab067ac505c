"""The rungs of lesson 05, whole and without their sigmoid, timed in one run."""

import functools
from collections.abc import Mapping

import numpy as np

from cnnlab.kernels.variants.one_core import RUNGS, Block
from cnnlab.kernels.variants.one_core_sums import sums_only
from cnnlab.measure import timing as measure
from cnnlab.measure.timing import Timing

SUMS = "sums of "


def timings(block: Block, repeats: int = 15) -> tuple[dict[str, Timing], dict[str, Timing]]:
    """The rungs on a block of images, and their sums alone, by rung; each is checked first.

    Sums are right if they are once NumPy has taken their sigmoid.
    """
    alone = {f"{SUMS}{rung}": sums_only(rung) for rung in RUNGS}
    calls = {rung: functools.partial(block.run, rung) for rung in RUNGS}
    calls |= {
        f"{SUMS}{rung}": functools.partial(block.run, rung, alone[f"{SUMS}{rung}"])
        for rung in RUNGS
    }

    def correct(name: str) -> None:
        got = block.result(name.removeprefix(SUMS), alone.get(name))
        got = 1 / (1 + np.exp(-got)) if name in alone else got
        measure.same(got, block.expected(), name=name)

    found = measure.compare(calls, checks=correct, repeats=repeats)
    return {rung: found[rung] for rung in RUNGS}, {rung: found[f"{SUMS}{rung}"] for rung in RUNGS}


def apart(whole: Mapping[str, Timing], sums: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    """The seconds of each rung in its sums, and what the sigmoid adds."""
    return {
        rung: {
            "sums": sums[rung].median,
            "sigmoid": max(timing.median - sums[rung].median, 0.0),
        }
        for rung, timing in whole.items()
    }
