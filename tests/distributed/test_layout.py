"""Which share of its input a rank needs for its share of a layer's output."""

import pytest

from cnnlab.distributed.model import FEATURES, ROWS, cuts, input_axis, needed, shares
from cnnlab.network import LENET5, Network


def test_by_pixels_windows_reach_into_the_rows_below():
    net = Network()
    assert needed(net["conv"], ROWS, (0, 12)) == (0, 16)
    assert needed(net["conv"], ROWS, (12, 24)) == (12, 28)
    assert needed(net["pool"], ROWS, (3, 6)) == (12, 24)
    assert needed(net["conv_sigmoid"], ROWS, (3, 6)) == (3, 6)
    assert needed(net["dense"], ROWS, (0, 5)) == (0, 6)


def test_by_features_convolutions_and_full_connections_need_all():
    assert needed(LENET5["conv2"], FEATURES, (3, 5)) == (0, 6)
    assert needed(LENET5["dense1"], FEATURES, (3, 5)) == (0, 16)
    assert needed(LENET5["max_pool1"], FEATURES, (3, 5)) == (3, 5)
    assert needed(LENET5["conv2"], FEATURES, (2, 2)) == (0, 0)


def test_a_layer_is_cut_into_blocks_of_its_features_or_rows():
    assert cuts(Network(), 4, "features")[0] == (FEATURES, [(0, 1), (1, 3), (3, 4), (4, 6)])
    assert cuts(Network(), 4, "pixels")[2] == (ROWS, [(0, 1), (1, 3), (3, 4), (4, 6)])
    assert cuts(Network(), 4, "pixels")[4].axis == FEATURES
    axes = [input_axis(LENET5.places, i, "pixels") for i in range(len(LENET5.places))]
    assert axes == [ROWS] * 7 + [FEATURES] * 5
    with pytest.raises(ValueError, match="cut: expected one of features, pixels, got 'time'"):
        cuts(Network(), 2, "time")


def test_what_ranks_own_of_an_input_is_what_the_layer_below_gives_them():
    by_rows = shares(LENET5, 2, "pixels")
    assert by_rows[0] == ("conv1", 28, [(0, 16), (12, 28)], [(0, 16), (12, 28)])
    assert by_rows[3] == ("conv2", 12, [(0, 6), (6, 12)], [(0, 8), (4, 12)])
    assert by_rows[6] == ("dense1", 4, [(0, 2), (2, 4)], [(0, 4), (0, 4)])
    assert shares(LENET5, 2, "features")[3] == ("conv2", 6, [(0, 3), (3, 6)], [(0, 6), (0, 6)])
