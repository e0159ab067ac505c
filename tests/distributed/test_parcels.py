"""Gradients on their way to a server: whole, to the bit, or as a compressor has them."""

import numpy as np
import pytest

from cnnlab.distributed.compression import HEAD, Parcels
from cnnlab.ranks.virtual import World


def sent(comm, compress, values, n_messages=1):
    """What arrives of some messages in all, with their heads, and the length of one."""
    parcels, total = Parcels(comm, compress), np.zeros_like(values)
    message, found = parcels.empty(values), np.empty_like(values)
    for k in range(n_messages):
        parcels.write(message, values, k / 3, comm.rank, k, 2**40)
        assert parcels.read(message, found) == [k / 3, comm.rank, k, 2**40]
        total += found
    return total, len(message)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_gradients_arrive_to_the_bit(dtype):
    values = np.random.default_rng(0).normal(size=33).astype(dtype)
    found, n_bytes = World(1).run(sent, None, values)[0]
    assert np.array_equal(found, values) and n_bytes == 8 * HEAD + values.nbytes


@pytest.mark.parametrize("compress", ["one_bit", "topk:0.1", "qsgd4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compressed_ones_are_short_and_right_in_the_long_run(compress, dtype):
    values = np.random.default_rng(0).normal(size=1000).astype(dtype)
    found, n_bytes = World(1).run(sent, compress, values, 200)[0]
    assert n_bytes < 1000 and abs(found / 200 - values).mean() < 0.1


def test_messages_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match="compress: expected messages of one length, got streams"):
        World(1).run(sent, "streams", np.zeros(10, np.float32))
