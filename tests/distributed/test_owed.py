"""A checkpoint holds what the compressors of all ranks keep; residuals, say."""

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd, train
from tests.ranks.programs import run

PLAN = {"batch": 40, "rate": 0.4, "progress": False, "seed": 3}
KEEPING = ["one_bit", "topk:0.05", "qsgd4", "terngrad", "streams:0.05", "dgc:0.05,9", "topq:16"]


def goes_on(comm, compress, folder, epochs=4, resume=None):
    """The parameters of a training on digits, with a checkpoint in a folder."""
    method, data = DataParallel(comm, compress=compress), load("digits", 400, 200)
    files = {"save": f"{folder}/x.npz", "resume": resume and f"{folder}/{resume}"}
    return train(data, method=method, epochs=epochs, **PLAN, **files).params.flat


@pytest.mark.parametrize("compress", ["int8", *KEEPING])
def test_a_resumed_training_has_the_bits_of_an_unbroken_one(compress, tmp_path):
    unbroken = World(3).run(goes_on, compress, tmp_path)
    World(3).run(goes_on, compress, tmp_path, 2)
    resumed = World(3).run(goes_on, compress, tmp_path, 4, "x.npz")
    np.testing.assert_array_equal(resumed, unbroken)


def test_what_warming_up_would_have_sent_is_not_owed():
    def program(comm):
        """An epoch of one step, as `train` takes it, and as one takes it by hand."""
        data, plan = load("digits", 40, 10), {**PLAN, "epochs": 1}
        result = train(data, method=DataParallel(comm, compress="one_bit"), **plan).params.flat
        params = Network().parameters(3)
        group = Replica(
            KERNELS["vector"], params, data.train_images, data.train_labels, 40, Sgd(0.4)
        )
        method = DataParallel(comm, compress="one_bit")
        method.step(group, np.random.default_rng([3, 1]).permutation(40))
        return abs(result - params.flat).max()

    assert World(3).run(program) == [0, 0, 0]


@pytest.mark.parametrize(
    "size, compress, said",
    [
        (4, "one_bit", "expected ranks 4, .* was trained with 3"),
        (3, "qsgd4", "expected compress qsgd4, .* was trained with one_bit"),
        (3, None, "expected compress none, .* was trained with one_bit"),
        (3, "none", "expected compress none, .* was trained with one_bit"),
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


@pytest.mark.mpi
def test_real_ranks_go_on_where_they_stopped(tmp_path):
    result = []
    for epochs, resume in ((4, None), (2, None), (4, "x.npz")):
        how = f"'one_bit', {str(tmp_path)!r}, {epochs}, {resume!r}"
        result.append(run(2, "-c", REAL.format(how))[0])
    assert result[0] == result[2] != result[1]


REAL = """
from hashlib import sha256
from cnnlab.ranks import job
from tests.distributed.test_owed import goes_on
with job.together() as comm:
    found = sha256(goes_on(comm, {})).hexdigest()
    if comm.rank == 0:
        print(found)
"""
