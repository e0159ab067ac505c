import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compression import CompressedSum, to_each
from cnnlab.distributed.compressors import COMPRESSORS, compressor
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks.virtual import World
from cnnlab.training import train


def test_each_rank_gets_the_rows_that_are_meant_for_it():
    def program(comm):
        received = np.empty((comm.size, 1), np.uint8)
        to_each(
            comm, [np.array([10 * comm.rank + r], np.uint8) for r in range(comm.size)], received
        )
        return received[:, 0].tolist()

    for size in (1, 2, 5):
        expected = [[10 * r + rank for r in range(size)] for rank in range(size)]
        assert World(size).run(program) == expected


def added(comm, compress, n, n_messages):
    """The mean over some messages of what is added up, and the last message."""
    method, total = CompressedSum(comm, compress), np.zeros(n)
    for _ in range(n_messages):
        flat = np.random.default_rng(comm.rank).standard_normal(n).astype(np.float32)
        method.add_up(flat)
        total += flat
    return total / n_messages, flat


ONE_LENGTH = [name for name in COMPRESSORS if not compressor(name)(1).streams]


@pytest.mark.parametrize("compress", [*ONE_LENGTH, "qsgd2", "topk:0.1"])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_over_many_messages_the_sum_is_right_and_the_same_bits_are_everywhere(size, compress):
    n = 700
    right = sum(np.random.default_rng(r).standard_normal(n).astype(np.float32) for r in range(size))
    results = World(size).run(added, compress, n, 200)
    for mean, last in results:
        np.testing.assert_array_equal(mean, results[0][0])
        np.testing.assert_array_equal(last, results[0][1])
    off = {"none": 1e-5, "fp16": 1e-2, "int8": 0.1, "qsgd": 0.6, "qsgd2": 2, "terngrad": 2}
    assert abs(results[0][0] - right).max() < size * off.get(compress, 1.5)
    assert np.corrcoef(results[0][0], right)[0, 1] > 0.9


def trained(comm, compress):
    plan = {"batch": 40, "rate": 0.4, "epochs": 3, "progress": False}
    return train(load("digits", 800, 200), method=DataParallel(comm, compress=compress), **plan)


def test_without_compression_it_is_data_parallelism():
    plan = {"batch": 40, "rate": 0.4, "epochs": 3, "progress": False}
    alone = train(load("digits", 800, 200), **plan).params.flat
    for result in World(3).run(trained, "none"):
        np.testing.assert_allclose(result.params.flat, alone, atol=1e-4)


@pytest.mark.parametrize("compress", ["qsgd4", "one_bit", "topk:0.05", "terngrad", "topq:32"])
def test_with_compression_it_learns_and_sends_less(compress):
    worlds = {text: World(4) for text in ("none", compress)}
    results = {text: world.run(trained, text) for text, world in worlds.items()}
    losses = [row["loss"] for row in results[compress][0].history]
    assert losses[-1] < 0.95 * losses[0]
    assert len({result.params.flat.tobytes() for result in results[compress]}) == 1
    sent = {t: sum(event.n_bytes for event in world.events) for t, world in worlds.items()}
    assert sent[compress] < sent["none"] / 3
