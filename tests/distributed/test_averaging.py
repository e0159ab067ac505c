"""Ranks with a model each: what they find, by formula; graphs; checkpoints; what is refused."""

import functools
from itertools import chain

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.averaging import GRAPHS, Elastic, Gossip, Local, metropolis
from cnnlab.kernels import KERNELS
from cnnlab.network import NETWORKS
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import checkpoint, train
from tests.distributed import uncut
from tests.distributed.uncut import check_virtual
from tests.ranks.programs import run
from tests.replicas import replica_of

DIGITS = load("digits", 60, 10)
RATE = 0.5


BATCHES = [np.arange(k, k + n) for k, n in ((0, 12), (12, 12), (3, 12), (30, 12), (40, 2))]
EACH = functools.partial(Local, every=1)


replica = functools.partial(replica_of, DIGITS, "reference", 12, RATE)


def steps(comm, make, n_epochs=2):
    """On a rank: the result after some epochs, and this rank's own model just before."""
    group, method = replica(), make(comm)
    for _ in range(n_epochs):
        for chosen in BATCHES:
            method.step(group, chosen)
        own = group.params.flat.copy()
        method.gather(group)
    return group.params.flat, own


def models_by_formula(n, meet, n_epochs=2, before=False):
    """All models (P, n) after some epochs; `meet(models, step)` moves them.

    A gradient is taken before ranks meet, and the step along it is taken after; with `before` they
    meet before the gradient.
    """
    group = replica()
    models = np.stack([group.params.flat] * n)
    for step, chosen in chain.from_iterable(enumerate(BATCHES) for _ in range(n_epochs)):
        models = meet(models, step) if before else models
        directions = np.zeros_like(models)
        for rank, model in enumerate(models):
            mine = chosen[slice(*block(rank, n, len(chosen)))]
            group.params.flat[:] = model
            group.gradients(mine)
            directions[rank] = RATE * group.grads.flat / max(1, len(mine))
        models = (models if before else meet(models, step)) - directions
    return models


def on_ranks(n, make):
    """The result, and the models of all ranks (P, n), of n virtual ranks."""
    results, own = zip(*World(n).run(steps, make), strict=True)
    assert all(np.array_equal(results[0], other) for other in results)
    return results[0], np.stack(own)


# --- the formulas ---------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
def test_averaged_after_each_step_any_number_of_ranks_takes_the_steps_of_one(network):
    for n in (1, 3, 13):  # also more than images in a batch
        check_virtual(n, EACH, network)


def test_models_are_averaged_after_every_few_steps_and_at_the_end_of_an_epoch():
    """Two ranks, and the same number of images on each of them."""

    def meet(models, step):  # what an epoch left, and what three steps did
        return np.stack([models.mean(0)] * 2) if step in (0, 3) else models

    models = models_by_formula(2, meet, before=True)
    result, own = on_ranks(2, functools.partial(Local, every=3))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, models.mean(0), atol=1e-12)
    assert np.ptp(models, axis=0).max() > 1e-3 and len(BATCHES) == 5


def test_a_model_counts_by_its_images():
    """Three ranks share eleven images, and then two, before they meet."""
    batches, before = (np.arange(11), np.arange(2)), {}

    def program(comm):
        group, method = replica(), Local(comm, every=2)
        for chosen in batches:
            method.step(group, chosen)
            before.setdefault(comm.rank, group.params.flat.copy())
        return group.params.flat

    results, expected = World(3).run(program)[0], 0
    for rank in range(3):
        shares = [len(b[slice(*block(rank, 3, len(b)))]) for b in batches]
        group = replica()
        group.params.flat[:] = before[rank]
        group.gradients(batches[1][slice(*block(rank, 3, 2))])
        if shares[1]:
            group.update(shares[1])
        expected = expected + sum(shares) / 13 * group.params.flat
    np.testing.assert_allclose(results, expected, atol=1e-12)


@pytest.mark.parametrize("n, every, rate", [(1, 1, 0.5), (3, 1, 0.2), (5, 3, 0.1)])
def test_elastic_models_and_their_centre_move_from_the_old_values(n, every, rate):
    centre = replica().params.flat.copy()

    def meet(models, step):
        nonlocal centre
        if step % every:
            return models
        old, centre = centre, centre + rate * (models - centre).sum(0)
        return models - rate * (models - old)

    models = models_by_formula(n, meet)
    result, own = on_ranks(n, functools.partial(Elastic, every=every, moving_rate=rate))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, centre, atol=1e-12)
    assert abs(models - centre).max() > 1e-3


def test_all_pulls_together_are_nine_tenths_of_the_way_unless_another_rate_is_given():
    assert World(6).run(lambda comm: Elastic(comm).moving_rate) == [0.15] * 6


@pytest.mark.parametrize("n", [1, 3, 15])
def test_at_the_largest_rate_the_centre_swings_as_far_again(n):
    def program(comm):
        group, method = replica(), Elastic(comm, 1, 2 / (n + 1))
        method.enter(group)
        method.centre -= 1
        apart = []
        for _ in range(3):
            apart.append((group.params.flat - method.centre)[0])
            method.meet(group)
        return apart

    np.testing.assert_allclose(World(n).run(program)[0], [1, -1, 1])


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n, every", [(1, 1), (2, 1), (5, 1), (6, 2), (8, 1)])
def test_gossip_multiplies_models_by_the_matrices_of_a_graph(graph, n, every):
    matrices = GRAPHS[graph].matrices(n)

    def meet(models, step):
        if step % every:
            return models
        return matrices[step // every % len(matrices)] @ models

    models = models_by_formula(n, meet)
    result, own = on_ranks(n, functools.partial(Gossip, every=every, graph=graph))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, models.mean(0), atol=1e-12)
    assert n == 1 or np.ptp(models, axis=0).max() > 1e-3


# --- graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 12, 25])
def test_rows_and_columns_add_up_to_one(graph, n):
    for weights in GRAPHS[graph].matrices(n):
        assert weights.shape == (n, n) and weights.min() >= 0
        np.testing.assert_allclose([weights.sum(0), weights.sum(1)], 1)
        assert n == 1 or weights.diagonal().min() > 0


@pytest.mark.parametrize("n, rank, expected", [(12, 5, [1, 4, 6, 9]), (12, 3, [2, 7]), (5, 0, [1])])
def test_in_a_grid_ranks_hear_those_beside_above_and_below(n, rank, expected):
    """Three rows of four; a line. The other graphs are those in the cells of lesson 55."""
    (weights,) = GRAPHS["grid"].matrices(n)
    assert [j for j in range(n) if weights[rank, j] and j != rank] == expected


def test_an_edge_weighs_by_the_larger_degree():
    np.testing.assert_allclose(GRAPHS["ring"].matrices(2), 1 / 2)
    star = metropolis(4, [(0, 1), (0, 2), (0, 3)])
    np.testing.assert_allclose(star[:2], [[1 / 4] * 4, [1 / 4, 3 / 4, 0, 0]])


# --- in a training --------------------------------------------------------------------------------

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
        return train(uncut.DIGITS, method=WAYS[way](comm), **(HOW | options | {"save": save}))

    return World(n).run(program)


@EVERY
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_resumed_training_is_an_unbroken_one_to_the_bit(way, optimizer, tmp_path):
    file, how = tmp_path / "a.npz", {"optimizer": optimizer}
    first = trained(way, epochs=2, save=file, **how)
    resumed = trained(way, epochs=4, resume=file, save=file, **how)
    unbroken = trained(way, epochs=4, **how)
    for one, other in zip(resumed, unbroken, strict=True):
        for same in (other, unbroken[0]):  # on all ranks
            assert np.array_equal(one.params.flat, same.params.flat)
        assert [row["loss"] for row in one.history] == [row["loss"] for row in other.history]
    assert not np.array_equal(first[0].params.flat, unbroken[0].params.flat)
    assert np.array_equal(checkpoint.load(file).params.flat, unbroken[0].params.flat)


@pytest.mark.parametrize("way", ["elastic", "gossip"])
def test_a_rank_goes_on_with_its_own_model_and_state(way):
    def program(comm):
        group, method = uncut.replica("report"), WAYS[way](comm)
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


@pytest.mark.parametrize(
    "way, options, text",
    [
        ("local", {"every": 2}, "every 2, .* was trained with 3"),
        ("elastic", {"moving_rate": 0.1}, "moving_rate 0.1, .* was trained with 0.3"),
        ("gossip", {"graph": "grid"}, "graph grid, .* was trained with one-peer"),
    ],
)
def test_a_training_goes_on_as_it_began(way, options, text, tmp_path, monkeypatch):
    file = tmp_path / "a.npz"
    trained(way, epochs=1, save=file)
    if way == "local":  # where ranks agree, more of them may go on
        assert len(trained(way, 5, epochs=2, resume=file)[4].history) == 2
    else:
        with pytest.raises(ValueError, match=r"resume: expected ranks 5, .* was trained with 3"):
            trained(way, 5, epochs=2, resume=file)
    monkeypatch.setitem(WAYS, way, functools.partial(WAYS[way], **options))
    with pytest.raises(ValueError, match=f"resume: expected {text}"):
        trained(way, epochs=2, resume=file)


@EVERY
def test_messages_have_no_fault_that_mpi_would_hide(way):
    assert examine(lambda comm: uncut.steps(WAYS[way](comm), "report"), 3) == []


PROGRAM = """
import sys
import numpy as np
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks import job
from cnnlab.ranks.virtual import World
from cnnlab.training import train
from tests.distributed import uncut
from tests.distributed.test_averaging import EACH, HOW, WAYS, steps

def program(comm, make, **how):
    how |= HOW | {"optimizer": "momentum"}
    return train(uncut.DIGITS, method=make(comm), **how).params.flat

with job.together() as comm:
    np.testing.assert_allclose(steps(comm, EACH)[0], steps(comm, DataParallel)[0], atol=1e-12)
    uncut.check([uncut.steps(EACH(comm), "lenet5")], "lenet5")
    for name, make in WAYS.items():
        save = {"save": f"{sys.argv[1]}/{name}"} if comm.rank == 0 else {}
        program(comm, make, epochs=1, **save)
        comm.Barrier()
        resumed = program(comm, make, epochs=2, resume=f"{sys.argv[1]}/{name}")
        assert np.array_equal(resumed, program(comm, make, epochs=2))
        there = World(comm.size).run(lambda c: program(c, make, epochs=2))
        np.testing.assert_allclose(resumed, there[comm.rank], atol=1e-6)
    comm.Barrier()
    print("good")
"""


@pytest.mark.mpi
def test_real_ranks_find_what_virtual_ones_do_and_go_on_from_a_checkpoint(tmp_path):
    assert run(3, "-c", PROGRAM, str(tmp_path))[0].endswith("good\n")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("n, rate", [(2, 0.0), (2, -0.1), (1, 1.01), (3, 0.51), (4, float("nan"))])
def test_a_rate_beyond_which_the_centre_swings_further_each_time_is_refused(n, rate):
    text = f"moving_rate: expected a number above 0, at most {2 / (n + 1):.3g} for {n} ranks, got"
    with pytest.raises(ValueError, match=text):
        World(n).run(Elastic, 1, rate)


@EVERY
def test_kernels_for_all_ranks_graphs_and_numbers_of_steps_that_are_none_are_refused(way):
    apart = ", ".join(name for name in KERNELS if not KERNELS[name].together)
    with pytest.raises(ValueError, match=f"kernels: expected one of {apart}, .* got partitioned"):
        trained(way, kernels="partitioned", epochs=1)
    with pytest.raises(ValueError, match="every: expected a whole number of at least 1, got 0"):
        World(1).run(functools.partial(WAYS[way], every=0))
    with pytest.raises(ValueError, match="graph: expected one of ring, grid, exponential, one-"):
        World(2).run(functools.partial(Gossip, graph="star"))
