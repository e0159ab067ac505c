import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compressors.topk import Streams
from cnnlab.lessons.lesson_57 import challenge_streams, said

DIGITS = load("digits", 320, 100)
MINE = functools.partial(Streams, argument=0.2)
PLAN = {"n_ranks": 2, "epochs": 3}


def choosing(places, values):
    class Made:
        def choose(self, gradient, n_images, n_ranks):
            return places, values

    return lambda n, seed: Made()


@pytest.mark.parametrize(
    "places, values, word",
    [
        (np.arange(3), np.ones(3, np.float32), "int64"),
        (np.arange(3, dtype=np.int32), np.ones(3), "float64"),
        (np.arange(3, dtype=np.int32), np.ones(2, np.float32), "(2,)"),
        (np.int32([2, 1]), np.ones(2, np.float32), "ascending"),
        (np.int32([1, 1]), np.ones(2, np.float32), "each once"),
        (np.int32([1, 1000]), np.ones(2, np.float32), "to 999"),
    ],
)
def test_what_cannot_be_added_up_is_told(places, values, word):
    assert word in said(choosing(places, values))
    assert said(choosing(np.int32([]), np.float32([]))) == said(MINE) == ""


def test_fewer_bytes_at_the_goal_are_told(capsys):
    n_bytes = challenge_streams(MINE, 0.8, DIGITS, 0.0, 10**6, **PLAN)
    assert n_bytes > 0 and f"{10**6 / n_bytes:.2f} times fewer" in capsys.readouterr().out
    assert challenge_streams(MINE, 0.8, DIGITS, 1.1, 10**6, **PLAN) is None
    assert "the goal is 110.0%" in capsys.readouterr().out
    assert challenge_streams(..., 0.8, DIGITS, 0.5, 10**6) is None
    assert "not yet" in capsys.readouterr().out
