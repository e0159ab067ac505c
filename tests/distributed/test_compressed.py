"""Compressed gradients: their sums, what a training learns, and what its checkpoint holds."""

import hashlib
import json

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compression import CompressedSum, summing
from cnnlab.distributed.compressors import COMPRESSORS, compressor
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks.virtual import World
from cnnlab.training import train
from tests.ranks.programs import run
from tests.replicas import replica_of

PLAN = {"batch": 40, "rate": 0.4, "progress": False, "seed": 3}


def gradient(rank, step=0, n=400):
    return np.random.default_rng([rank, step]).standard_normal(n).astype(np.float32)


# --- sums -----------------------------------------------------------------------------------------


def added(comm, compress, n, n_messages):
    """The mean over some messages of what is added up, and the last message."""
    method, total = CompressedSum(comm, compressor(compress)), np.zeros(n)
    for _ in range(n_messages):
        flat = gradient(comm.rank, n=n)
        method.add_up(flat)
        total += flat
    return total / n_messages, flat


ONE_LENGTH = [name for name in COMPRESSORS if not compressor(name)(1).streams]


@pytest.mark.parametrize("compress", [*ONE_LENGTH, "qsgd2", "topk:0.1"])
@pytest.mark.parametrize("size", [1, 5])
def test_over_many_messages_the_sum_is_right_and_the_same_bits_are_everywhere(size, compress):
    n = 700
    right = sum(gradient(rank, n=n) for rank in range(size))
    results = World(size).run(added, compress, n, 200)
    for mean, last in results:
        np.testing.assert_array_equal(mean, results[0][0])
        np.testing.assert_array_equal(last, results[0][1])
    off = {"none": 1e-5, "fp16": 1e-2, "int8": 0.1, "qsgd": 0.6, "qsgd2": 2, "terngrad": 2}
    assert abs(results[0][0] - right).max() < size * off.get(compress, 1.5)
    assert np.corrcoef(results[0][0], right)[0, 1] > 0.9


def sums(comm, compress):
    """The sums of some steps, and what is kept in the end."""
    method, results = summing(comm, compress), []
    for step in range(5):
        flat = gradient(comm.rank, step)
        method.add_up(flat, 8)
        results.append(flat)
    return np.array(results), method.compressors[0].residual


@pytest.mark.parametrize("compress", ["streams:0.05", "dgc:0.05", "dgc:0.05,2"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_sum_is_that_of_all_streams_with_the_same_bits_everywhere(size, compress):
    results, expected = World(size).run(sums, compress), np.zeros((5, 400))
    for rank in range(size):
        made = compressor(compress)(400)
        for step in range(5):
            places, values = made.choose(gradient(rank, step), 8, size)
            expected[step][places] += values
        np.testing.assert_array_equal(results[rank][1], made.residual)
    for steps, _ in results:
        np.testing.assert_array_equal(steps, results[0][0])
        np.testing.assert_allclose(steps, expected, atol=1e-4)


# --- trainings ------------------------------------------------------------------------------------


def trained(comm, compress, rate=0.4):
    method, data = DataParallel(comm, compress=compress), load("digits", 800, 200)
    return train(data, method=method, epochs=3, **PLAN | {"rate": rate})


def test_whatever_sends_all_numbers_is_data_parallelism():
    alone = train(load("digits", 800, 200), epochs=3, **PLAN).params.flat
    for compress in ("none", "streams:1"):
        for result in World(3).run(trained, compress):
            np.testing.assert_allclose(result.params.flat, alone, atol=1e-4)


@pytest.mark.parametrize(
    "compress",
    ["qsgd4", "one_bit", "topk:0.05", "terngrad", "topq:32", "streams:0.05", "dgc:0.05,10"],
)
def test_with_compression_ranks_learn_agree_and_send_less(compress):
    worlds = {text: World(4) for text in ("none", compress)}
    rate = 0.2 if compressor(compress)(1).streams else 0.4
    results = {text: world.run(trained, text, rate) for text, world in worlds.items()}
    losses = [row["loss"] for row in results[compress][0].history]
    assert losses[-1] < 0.95 * losses[0]
    assert len({result.params.flat.tobytes() for result in results[compress]}) == 1
    sent = {t: sum(event.n_bytes for event in world.events) for t, world in worlds.items()}
    assert sent[compress] < sent["none"] / (1 if compressor(compress)(1).streams else 3)


def test_warming_up_leaves_nothing_to_be_sent():
    """An epoch of one step, as `train` takes it, and as one takes it by hand."""

    def one_step(comm):
        data, method = load("digits", 40, 10), DataParallel(comm, compress="one_bit")
        result = train(data, method=method, epochs=1, **PLAN).params.flat
        group = replica_of(data, batch=40, rate=0.4, seed=3)
        method = DataParallel(comm, compress="one_bit")
        method.step(group, np.random.default_rng([3, 1]).permutation(40))
        return abs(result - group.params.flat).max()

    assert World(3).run(one_step) == [0, 0, 0]


# --- checkpoints hold what the compressors of all ranks keep; residuals, say ----------------------

KEEPING = ["one_bit", "topk:0.05", "qsgd4", "terngrad", "streams:0.05", "dgc:0.05,9", "topq:16"]


def goes_on(comm, compress, folder, epochs=2, resume=None):
    """The parameters of a training on digits, with a checkpoint in a folder."""
    method, data = DataParallel(comm, compress=compress), load("digits", 400, 200)
    files = {"save": f"{folder}/x.npz", "resume": resume and f"{folder}/{resume}"}
    return train(data, method=method, epochs=epochs, **PLAN, **files).params.flat


@pytest.mark.parametrize("compress", ["int8", *KEEPING])
def test_a_resumed_training_has_the_bits_of_an_unbroken_one(compress, tmp_path):
    unbroken = World(3).run(goes_on, compress, tmp_path)
    World(3).run(goes_on, compress, tmp_path, 1)
    resumed = World(3).run(goes_on, compress, tmp_path, 2, "x.npz")
    np.testing.assert_array_equal(resumed, unbroken)


@pytest.mark.parametrize(
    "size, compress, said",
    [
        (4, "one_bit", "expected ranks 4, .* was trained with 3"),
        (3, "qsgd4", "expected compress qsgd4, .* was trained with one_bit"),
        (3, None, "expected compress none, .* was trained with one_bit"),
    ],
)
def test_other_ranks_or_another_compressor_are_refused_in_a_line(size, compress, said, tmp_path):
    World(3).run(goes_on, "one_bit", tmp_path, 1)
    with pytest.raises(ValueError, match=f"^resume: {said}"):
        World(size).run(goes_on, compress, tmp_path, 2, "x.npz")


def test_what_keeps_nothing_goes_on_with_other_ranks(tmp_path):
    World(3).run(goes_on, "fp16", tmp_path, 1)
    World(2).run(goes_on, "fp16", tmp_path, 2, "x.npz")
    World(2).run(goes_on, "none", tmp_path, 1)
    World(1).run(goes_on, None, tmp_path, 2, "x.npz")


def digest(comm, compress, *more):
    """The digest of the parameters that a rank ends with."""
    return hashlib.sha256(goes_on(comm, compress, *more)).hexdigest()


REAL = """
import json, sys
from cnnlab.ranks import job
from tests.distributed.test_compressed import KEEPING, digest
with job.together() as comm:
    results = []
    for compress in KEEPING:
        for more in ((2,), (1,), (2, "x.npz")):
            comm.Barrier()  # rank 0 has written what all are about to read
            results.append(digest(comm, compress, sys.argv[1], *more))
    results = comm.gather(results)
    if comm.rank == 0:
        print(json.dumps(results))
"""


@pytest.mark.mpi
def test_real_ranks_have_the_bits_of_virtual_ones_and_go_on_where_they_stopped(tmp_path):
    out, _ = run(3, "-c", REAL, str(tmp_path))
    expected = []
    for compress in KEEPING:
        expected += [World(3).run(digest, compress, tmp_path, n)[0] for n in (2, 1)]
        expected.append(expected[-2])  # resumed as unbroken
    assert json.loads(out) == [expected] * 3
