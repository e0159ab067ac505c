"""What ways to train with a model of each rank's own have in common."""

import functools

import numpy as np
import pytest

from cnnlab.distributed.averaging import Elastic, Gossip, Local
from cnnlab.kernels import KERNELS
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import checkpoint, train
from tests.distributed.uncut import DIGITS, replica, steps
from tests.ranks.programs import run

WAYS = {
    "local": functools.partial(Local, every=3),
    "elastic": functools.partial(Elastic, every=3),
    "gossip": functools.partial(Gossip, every=2, graph="one-peer"),
}
EVERY = pytest.mark.parametrize("way", WAYS)
HOW = {"batch": 8, "rate": 0.1, "progress": False}  # 4 steps an epoch


def trained(way, n=3, **options):
    def program(comm):
        save = options.get("save") if comm.rank == 0 else None
        return train(DIGITS, method=WAYS[way](comm), **(HOW | options | {"save": save}))

    return World(n).run(program)


@EVERY
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_resumed_training_is_an_unbroken_one_to_the_bit(way, optimizer, tmp_path):
    file, how = tmp_path / "a.npz", {"optimizer": optimizer}
    first = trained(way, epochs=2, save=file, **how)
    resumed = trained(way, epochs=4, resume=file, save=file, **how)
    unbroken = trained(way, epochs=4, **how)
    for one, other in zip(resumed, unbroken, strict=True):
        assert np.array_equal(one.params.flat, other.params.flat)
        assert [row["loss"] for row in one.history] == [row["loss"] for row in other.history]
    assert not np.array_equal(first[0].params.flat, unbroken[0].params.flat)
    assert np.array_equal(checkpoint.load(file).params.flat, unbroken[0].params.flat)


@pytest.mark.parametrize("way", ["elastic", "gossip"])
def test_a_rank_goes_on_with_its_own_model_and_state(way):
    def program(comm):
        group, method = replica("report"), WAYS[way](comm)
        method.step(group, np.arange(11))
        own = [group.params.flat.copy(), group.optimizer.state["velocity"].copy()]
        method.gather(group)
        for array in (group.params.flat, group.optimizer.state["velocity"]):
            array[:] = 0
        method.enter(group)
        assert np.array_equal(own[0], group.params.flat)
        assert np.array_equal(own[1], group.optimizer.state["velocity"])
        return own

    first, second = World(2).run(program)
    assert not np.array_equal(first[0], second[0]) and not np.array_equal(first[1], second[1])


@pytest.mark.parametrize("way, fits", [("local", True), ("elastic", False), ("gossip", False)])
def test_only_where_ranks_agree_may_more_of_them_go_on(way, fits, tmp_path):
    file = tmp_path / "a.npz"
    trained(way, epochs=1, save=file)
    if fits:
        assert len(trained(way, 5, epochs=2, resume=file)[4].history) == 2
    else:
        with pytest.raises(ValueError, match=r"resume: expected ranks 5, .* was trained with 3"):
            trained(way, 5, epochs=2, resume=file)


@pytest.mark.parametrize(
    "way, options, text",
    [
        ("local", {"every": 2}, "every 2, .* was trained with 3"),
        ("elastic", {"moving_rate": 0.1}, "moving_rate 0.1, .* was trained with 0.3"),
        ("gossip", {"graph": "grid"}, "graph grid, .* was trained with one-peer"),
    ],
)
def test_a_training_goes_on_as_it_began(way, options, text, tmp_path, monkeypatch):
    trained(way, epochs=1, save=tmp_path / "a.npz")
    monkeypatch.setitem(WAYS, way, functools.partial(WAYS[way], **options))
    with pytest.raises(ValueError, match=f"resume: expected {text}"):
        trained(way, epochs=2, resume=tmp_path / "a.npz")


@EVERY
def test_all_ranks_end_with_the_same_result_and_no_fault_that_mpi_would_hide(way):
    first, *others = trained(way, 5, epochs=1)
    assert all(np.array_equal(first.params.flat, other.params.flat) for other in others)
    assert examine(lambda comm: steps(WAYS[way](comm), "report"), 3) == []


PROGRAM = """
import numpy as np
from cnnlab.ranks import job
from cnnlab.ranks.virtual import World
from cnnlab.training import train
from tests.distributed.test_averaging import DIGITS, HOW, WAYS
import sys

def program(comm, make, **how):
    return train(DIGITS, method=make(comm), optimizer="momentum", **HOW, **how).params.flat

with job.together() as comm:
    for name, make in WAYS.items():
        save = {"save": f"{sys.argv[1]}/{name}"} if comm.rank == 0 else {}
        program(comm, make, epochs=1, **save)
        comm.Barrier()
        found = program(comm, make, epochs=2, resume=f"{sys.argv[1]}/{name}")
        unbroken = program(comm, make, epochs=2)
        assert np.array_equal(found, unbroken)
        there = World(comm.size).run(lambda c: program(c, make, epochs=2))
        np.testing.assert_allclose(found, there[comm.rank], atol=1e-6)
    comm.Barrier()
    print("good")
"""


@pytest.mark.mpi
def test_real_ranks_find_what_virtual_ones_do_and_go_on_from_a_checkpoint(tmp_path):
    assert run(3, "-c", PROGRAM, str(tmp_path))[0].endswith("good\n")


@EVERY
def test_kernels_that_all_ranks_call_together_are_refused(way):
    apart = ", ".join(name for name in KERNELS if not KERNELS[name].together)
    with pytest.raises(ValueError, match=f"kernels: expected one of {apart}, .* got partitioned"):
        trained(way, kernels="partitioned", epochs=1)


@EVERY
def test_ranks_meet_at_least_every_few_steps(way):
    with pytest.raises(ValueError, match="every: expected a whole number of at least 1, got 0"):
        WAYS[way](World(1).run(lambda comm: comm)[0], every=0)
