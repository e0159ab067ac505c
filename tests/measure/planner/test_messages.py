"""Matrices of bytes: what allreduces and exchanges of pieces send."""

import numpy as np

from cnnlab.measure.planner.messages import allreduce, around, nothing, pieces


def test_an_allreduce_of_short_arrays_sends_all_in_each_round():
    rounds = allreduce(4, 10)
    assert [int(sent.sum()) for sent in rounds if sent.any()] == [160, 160]
    assert sum(rounds)[0].tolist() == [0, 40, 40, 0]


def test_one_of_long_arrays_sends_halves():
    n = 1 << 16
    assert sum(allreduce(4, n)).sum() == 4 * 2 * 3 * n  # (P - 1)/P of it, twice, by each of P


def test_pieces_go_to_who_needs_them():
    owned, everything = [(0, 2), (2, 3)], [(0, 3), (0, 3)]
    assert pieces(owned, everything, 8).tolist() == [[0, 16], [8, 0]]
    assert pieces(owned, owned, 8).tolist() == nothing(2).tolist()
    assert pieces([(0, 0), (0, 2)], [(1, 1), (0, 2)], 8).tolist() == np.zeros((2, 2)).tolist()


def test_blocks_go_around_a_ring_until_all_have_all():
    first, second = around([1, 2, 4])
    assert first.tolist() == [[0, 1, 0], [0, 0, 2], [4, 0, 0]]
    assert second.tolist() == [[0, 4, 0], [0, 0, 1], [2, 0, 0]]
    assert around([7]) == []
