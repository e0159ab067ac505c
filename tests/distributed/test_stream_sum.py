import hashlib

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compression import CompressedSum, StreamSum, summing
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.trial import Counting
from cnnlab.ranks.virtual import World
from cnnlab.training import train
from tests.ranks.programs import run

N = 400


def gradient(rank, step):
    return np.random.default_rng([rank, step]).standard_normal(N).astype(np.float32)


def sums(comm, compress):
    """The sums of some steps, what is sent, and what is owed in the end."""
    method, results = summing(comm, compress), []
    for step in range(5):
        flat = gradient(comm.rank, step)
        method.add_up(flat, 8)
        results.append(flat)
    return np.array(results), method.n_sent, method.chosen.residual


@pytest.mark.parametrize("compress", ["streams:0.05", "dgc:0.05", "dgc:0.05,2"])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_the_sum_is_that_of_all_streams_with_the_same_bits_everywhere(size, compress):
    results = World(size).run(sums, compress)
    expected = np.zeros((5, N))
    for rank in range(size):
        made = compressor(compress)(N)
        for step in range(5):
            places, values = made.choose(gradient(rank, step), 8, size)
            expected[step][places] += values
        np.testing.assert_array_equal(results[rank][2], made.residual)
    for steps, *_ in results:
        np.testing.assert_array_equal(steps, results[0][0])
        np.testing.assert_allclose(steps, expected, atol=1e-4)


def test_bytes_are_counted_as_the_network_counts_them():
    world = Counting(8)
    results = world.run(sums, "streams:0.05")
    assert [n for _, n, _ in results] == world.sent.sum(1).tolist()


def test_messages_of_one_length_are_added_up_in_two_rounds():
    kinds = World(2).run(lambda comm: type(summing(comm, "topk:0.1")))
    assert kinds == [CompressedSum] * 2


def test_streams_go_no_other_way():
    with pytest.raises(ValueError, match=r"^compress: expected messages of one length"):
        World(2).run(lambda comm: CompressedSum(comm, "streams").add_up(gradient(0, 0)))


def trained(comm, compress, rate=0.2):
    plan = {"batch": 40, "rate": rate, "epochs": 3, "progress": False}
    return train(load("digits", 800, 200), method=DataParallel(comm, compress=compress), **plan)


def test_all_numbers_as_a_stream_are_plain_data_parallelism():
    plain = World(3).run(trained, "none")[0].params.flat
    for result in World(3).run(trained, "streams:1"):
        np.testing.assert_allclose(result.params.flat, plain, atol=1e-4)


@pytest.mark.parametrize("compress", ["streams:0.05", "dgc:0.05,10"])
@pytest.mark.parametrize("size", [1, 4])
def test_ranks_learn_together_and_agree(size, compress):
    results = World(size).run(trained, compress)
    losses = [row["loss"] for row in results[0].history]
    assert losses[-1] < 0.95 * losses[0]
    assert len({result.params.flat.tobytes() for result in results}) == 1


def test_warming_up_leaves_nothing_owed():
    """As no gradient of a training has been seen when it begins, so none is owed."""
    seen = []

    class Noting(StreamSum):
        def add_up(self, flat, n_images=1):
            seen.append(self.chosen.n_messages)
            super().add_up(flat, n_images)

    def program(comm):
        method = DataParallel(comm, compress="streams:0.05")
        method.compressed = Noting(comm, compressor("streams:0.05"))
        plan = {"batch": 40, "rate": 0.2, "epochs": 1, "progress": False}
        train(load("digits", 80, 20), method=method, **plan)

    World(1).run(program)
    assert seen == [0, 0, 1]  # one step to warm up, then two of an epoch


BOTH = "streams:0.05", "dgc:0.05,10"
PROGRAM = """
from cnnlab.ranks import world
from tests.distributed.test_stream_sum import BOTH, digest
comm = world()
found = comm.gather([digest(comm, compress) for compress in BOTH]) or []
print("\\n".join(" ".join(of) for of in found), end="")
"""


def digest(comm, compress):
    return hashlib.sha256(trained(comm, compress).params.flat).hexdigest()


@pytest.mark.mpi
def test_real_ranks_find_the_bits_of_virtual_ones():
    out, _ = run(3, "-c", PROGRAM)
    virtual = [World(3).run(digest, compress)[0] for compress in BOTH]
    assert [line.split() for line in out.splitlines()] == [virtual] * 3
