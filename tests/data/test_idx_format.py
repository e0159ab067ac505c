import struct

import numpy as np
import pytest

from cnnlab.data import DataError, mnist

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
RAW = struct.pack(">4B3I", 0, 0, 8, 3, *ARRAY.shape) + ARRAY.tobytes()


def test_the_header_gives_the_shape_of_the_values():
    array = mnist.parse(RAW, 3, "here")
    assert array.dtype == np.uint8 and np.array_equal(array, ARRAY)


@pytest.mark.parametrize("length", [0, 3, 7, 15])
def test_a_header_cut_short_is_found(length):
    with pytest.raises(DataError, match=f"here: expected an IDX header of 16 bytes .*got {length}"):
        mnist.parse(RAW[:length], 3, "here")


@pytest.mark.parametrize("raw, got", [(RAW[:-1], 23), (RAW + b"\0", 25)])
def test_values_are_as_many_as_promised(raw, got):
    with pytest.raises(DataError, match=f"here: expected 2 x 3 x 4 = 24 values, got {got}"):
        mnist.parse(raw, 3, "here")


def test_another_type_or_rank_is_refused():
    for raw, rank in ((RAW[:2] + b"\x0d" + RAW[3:], 3), (RAW, 1)):
        with pytest.raises(DataError, match=r"begins 00 00 08 0[13], got .* begin 00 00 "):
            mnist.parse(raw, rank, "here")
