import functools

import numpy as np

from cnnlab.data import load
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.base import Compressor
from cnnlab.lessons.lesson_56 import challenge_bits, said

DATA = load("digits", 400, 200)


class Remembers(Compressor):
    n_bytes = 1

    def pack(self, values):
        self.kept = values.copy()
        return np.zeros(1, np.uint8)

    def decode(self, message, values):
        values[:] = getattr(self, "kept", 0)


class Longer(Compressor):
    n_bytes = 8


def test_messages_must_be_what_is_sent_and_all_that_is_known():
    assert said(compressor("qsgd4")) == said(compressor("one_bit")) == ""
    assert "a rank that has not encoded" in said(Remembers)
    assert "expected uint8 (8,), got uint8 (4000,)" in said(Longer)


def test_the_challenge_is_told_and_won_in_fewer_bits(capsys):
    try_it = functools.partial(challenge_bits, data=DATA, best=8.0)
    assert try_it(..., goal=0.1) is None
    assert try_it(Remembers, goal=0.1) is None
    assert try_it(compressor("qsgd4"), goal=1.1) is None
    assert 4 < try_it(compressor("qsgd4"), goal=0.0) < 5
    assert try_it(compressor("fp16"), goal=0.0) == 16
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("not yet answered") and lines[1].startswith("✗ decode")
    assert "the goal is 110.0%" in lines[2] and "fewer than 8.00" in lines[3]
    assert "not fewer than 8.00" in lines[4]
