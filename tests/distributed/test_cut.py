"""Every way to cut a network: ranks that hold parts of it take the steps of one."""

import functools
from math import prod

import numpy as np
import pytest

from cnnlab.distributed import METHODS
from cnnlab.distributed.model import CUTS, Piece, cuts, inputs
from cnnlab.distributed.pipeline import Hybrid, ModelParallel, Pipeline, stages
from cnnlab.distributed.sharded import Sharded
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import composed
from cnnlab.network import (
    EIGHT,
    LENET5,
    NETWORKS,
    AveragePool,
    Conv,
    Dense,
    MaxPool,
    Network,
    Pad,
    ReLU,
    Sigmoid,
)
from cnnlab.ranks.pipeline import SCHEDULES
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import OPTIMIZERS, checkpoint, train
from tests.distributed.uncut import DIGITS, check_virtual, replica, steps
from tests.networks import MIXED
from tests.ranks.programs import run

GRAPHS = {"inception", "residual"}
EACH_SEQUENCE = pytest.mark.parametrize("network", [n for n in NETWORKS if n not in GRAPHS])


@EACH_SEQUENCE
@pytest.mark.parametrize("cut", CUTS)
def test_model_parallel_ranks_take_the_steps_of_one(cut, network):
    for n in (1, 2, 3, 5, 9):
        check_virtual(n, lambda comm: ModelParallel(comm, cut), network)


@EACH_SEQUENCE
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stages_take_the_steps_of_one(schedule, network):
    most = len(NETWORKS[network].places) // SCHEDULES[schedule].chunks
    for n in range(1, min(most, 9) + 1):
        check_virtual(n, lambda comm: Pipeline(comm, schedule, 4), network)
    if most < 9:
        with pytest.raises(ValueError, match="pipeline: expected at most"):
            check_virtual(most + 1, lambda comm: Pipeline(comm, schedule), network)


@pytest.mark.parametrize("network", NETWORKS)
def test_sharded_ranks_take_the_steps_of_one(network):
    for n in (1, 2, 3, 8, 13):  # at last more than images in a batch
        check_virtual(n, Sharded, network)


def test_what_sharded_ranks_hold_is_held_once():
    def program(comm):
        part = Sharded(comm).part(replica("lenet5"))
        held = part.params.flat, part.grads.flat, part.optimizer.state["velocity"]
        return [array.size for array in held]

    held, whole = np.array(World(7).run(program)), LENET5.parameters().flat.size
    assert (held.sum(0) == whole).all() and held.max() < whole / 7 + 5


@EACH_SEQUENCE
def test_any_grid_takes_the_steps_of_one(network):
    for grid in [(1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 4), (5, 1, 1), (1, 3, 2), (2, 2, 2)]:
        check_virtual(prod(grid), lambda comm, grid=grid: Hybrid(comm, grid, n_micro=2), network)
    options = {"schedule": "zero-bubble", "n_micro": 3, "cut": "pixels"}
    for grid in [(7, 1, 1), (2, 2, 2), (3, 1, 3), (1, 3, 3)]:
        check_virtual(prod(grid), lambda comm, grid=grid: Hybrid(comm, grid, **options), network)


@pytest.mark.parametrize("name", sorted(GRAPHS))
@pytest.mark.parametrize(
    "make", [Pipeline, ModelParallel, functools.partial(Hybrid, grid=(1, 2, 1))]
)
def test_a_graph_is_not_cut_but_refused_by_name(make, name):
    message = f"^network: expected layers in sequence, to cut there, got {name}, whose .* has other"
    with pytest.raises(ValueError, match=message):
        check_virtual(2, make, name)


def test_zeros_around_maps_are_cut_by_features_and_refused_by_pixels(monkeypatch):
    layers = Conv(4, 3), ReLU(), Pad(1), Conv(3, 3), MaxPool(3, 2), Dense(10), Sigmoid()
    monkeypatch.setitem(NETWORKS, "padded", Network(layers))
    check_virtual(3, lambda comm: ModelParallel(comm, "features"), "padded")
    with pytest.raises(ValueError, match=r"^cut: expected features where a network has Pad, got p"):
        check_virtual(2, lambda comm: ModelParallel(comm, "pixels"), "padded")


def test_windows_that_overlap_are_cut_by_pixels(monkeypatch):
    layers = Conv(4, 3), ReLU(), MaxPool(3, 2), AveragePool(3, 1), Dense(10), Sigmoid()
    monkeypatch.setitem(NETWORKS, "overlapping", Network(layers))
    for cut in CUTS:
        check_virtual(3, functools.partial(ModelParallel, cut=cut), "overlapping")


PROGRAM = """
from cnnlab.distributed.pipeline import ModelParallel
from cnnlab.distributed.pipeline import Hybrid, Pipeline
from cnnlab.distributed.sharded import Sharded
from cnnlab.network import NETWORKS
from cnnlab.ranks import job
from cnnlab.ranks.pipeline import SCHEDULES
from tests.distributed.uncut import check, steps

GRIDS = {6: (3, 2, 1), 4: (2, 1, 2), 2: (1, 2, 1)}

with job.together() as world:
    for first in (6, 4):  # and, beside them, the other two
        comm = world.Split(world.rank < first)
        methods = [Sharded(comm), Hybrid(comm, GRIDS[comm.size], n_micro=2)]
        methods += [ModelParallel(comm, cut) for cut in ("features", "pixels")]
        for method in methods:
            check([steps(method, "lenet5")], "lenet5")
        for schedule in SCHEDULES if comm.size == 2 else ("zero-bubble",):
            check([steps(Pipeline(comm, schedule, 4), "lenet5")], "lenet5")
        check([steps(Sharded(comm), "residual")], "residual")
    world.Barrier()
    print("good")
"""


@pytest.mark.mpi
def test_six_four_and_two_real_ranks_take_the_steps_of_one():
    assert run(6, "-c", PROGRAM)[0].endswith("good\n")


@pytest.mark.parametrize(
    "make",
    [
        *(functools.partial(Pipeline, schedule=schedule, n_micro=3) for schedule in SCHEDULES),
        *(functools.partial(ModelParallel, cut=cut) for cut in CUTS),
        functools.partial(Hybrid, grid=(1, 3, 1), schedule="zero-bubble"),
        Sharded,
    ],
)
def test_no_method_has_a_fault_that_mpi_would_hide(make):
    def program(comm):
        method = make(comm)
        result = steps(method, "report")
        method.close()
        return result

    assert examine(program, 3) == []


# --- layers in pieces -----------------------------------------------------------------------------

REFERENCE = KERNELS["reference"]


@pytest.mark.parametrize("by", CUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])  # at last some own nothing
def test_the_gradients_of_all_pieces_are_those_of_the_uncut_network(by, n):
    x, labels = np.random.default_rng(0).random((3, 2, 19, 23)), np.array([0, 3, 1])
    params, grads = MIXED.parameters(0, np.float64), MIXED.zeros(np.float64)
    loss = composed(REFERENCE, params, x, labels, grads)

    def program(comm):
        piece = Piece(MIXED, REFERENCE, 0, len(MIXED.places), comm, by)
        flat = params.flat[piece.positions]
        piece.hold(flat, np.zeros_like(flat))
        y, kept = piece.forward(x)
        loss, dy = piece.loss(y, labels)
        dx, of_outputs = piece.backward(kept, dy)
        piece.add_gradients(kept, of_outputs)
        piece.add_shared()
        assert dx is None
        return loss, piece.positions, piece.sums

    result = np.full_like(grads.flat, np.nan)
    ranks = World(n).run(program)
    for _, positions, sums in ranks:
        result[positions] = sums
    np.testing.assert_allclose(result, grads.flat, rtol=1e-9, atol=1e-12)
    assert sum(own for own, *_ in ranks) == pytest.approx(loss, rel=1e-12)
    held, dense = sum(len(own) for _, own, _ in ranks), 4 * (MIXED["dense"].input_shape[0] + 1)
    # By features no parameter is held twice, by pixels every filter is, but no full connection.
    assert held == grads.flat.size + (by == "pixels") * (n - 1) * (grads.flat.size - dense)


def test_what_ranks_own_of_an_input_is_what_the_layer_below_gives_them():
    by_rows = inputs(LENET5, 2, "pixels")
    assert by_rows[0] == (2, [(0, 16), (12, 28)], [(0, 16), (12, 28)])
    assert by_rows[3] == (2, [(0, 6), (6, 12)], [(0, 8), (4, 12)])
    assert by_rows[6] == (2, [(0, 2), (2, 4)], [(0, 4), (0, 4)])
    assert inputs(LENET5, 2, "features")[3] == (1, [(0, 3), (3, 6)], [(0, 6), (0, 6)])
    with pytest.raises(ValueError, match="cut: expected one of features, pixels, got 'time'"):
        cuts(Network(), 2, "time")


def test_by_pixels_a_convolution_sends_a_halo_of_four_rows_and_by_features_every_map():
    def lengths(cut):
        world = World(2)
        world.run(lambda comm: steps(ModelParallel(comm, cut), "lenet5"))
        return {event.n_bytes for event in world.events}

    halo = 11 * 6 * 2 * 12 * 4  # of the second layer: rank 1 sends 2 rows of 12 more than its own
    maps = 11 * 3 * 12 * 12 * 4  # 3 of 6 maps
    assert halo in lengths("pixels") and maps not in lengths("pixels")
    assert maps in lengths("features") and halo not in lengths("features")


# --- stages, grids, shards ------------------------------------------------------------------------


@pytest.mark.parametrize("n_micro", [1, 2, 7, 20])  # the last: more than images
def test_a_batch_is_cut_into_any_number_of_micro_batches(n_micro):
    check_virtual(3, lambda comm: Pipeline(comm, "1f1b", n_micro), "report")


def test_stages_are_cut_where_the_dearest_is_cheapest():
    assert stages(Network(), 2) == [0, 1, 6]  # the convolution, and all else
    for network in (Network(), LENET5, EIGHT):
        for n in range(1, min(9, len(network.places)) + 1):
            ends = stages(network, n)
            assert ends[0] == 0 and ends[-1] == len(network.places)
            assert sorted(set(ends)) == ends and len(ends) == n + 1
    for n in (0, 7):
        with pytest.raises(ValueError, match=f"pipeline: expected at most 6 stages, .* got {n}"):
            stages(Network(), n)


def test_ranks_may_take_micro_batches_in_different_orders():
    def last_one_first(comm):
        method = Pipeline(comm, "gpipe", 3)
        method.plan[0][3:] = reversed(method.plan[0][3:])  # rank 1 sends the first one first
        return method

    check_virtual(2, last_one_first, "report")


def test_in_a_grid_neighbours_share_a_layer_and_pipelines_lie_apart():
    def program(comm):
        method = Hybrid(comm, (2, 2, 2), n_micro=2)
        steps(method, "report")
        return method.layer.members, method.line.members, method.data.members

    assert World(8).run(program)[0] == ((0, 1), (0, 2), (0, 4))
    text = "grid: expected data × pipeline × model to be the 4 ranks, got 2 × 2 × 2 = 8"
    with pytest.raises(ValueError, match=text):
        World(4).run(lambda comm: Hybrid(comm, (2, 2, 2)))


# --- what ranks hold comes together after each epoch: to be tested, and kept ----------------------

# In float64: some optimisers divide by what is little more than rounding.
HOW = {"batch": 8, "kernels": "reference", "rate": 0.01, "progress": False}


def trained(make, n=3, **options):
    how = HOW | options

    def program(comm):
        save = how.get("save") if comm.rank == 0 else None
        return train(DIGITS, method=make(comm), **(how | {"save": save}))

    return World(n, measured=True).run(program)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_method_trains_with_every_optimiser(optimizer):
    """As one rank does; where ranks step on their own, their one model learns."""
    network = Network((Conv(2, 5), ReLU(), MaxPool(4), Dense(10), Sigmoid()))
    how = {"optimizer": optimizer, "network": network, "epochs": 2}
    one = train(DIGITS, **HOW, **how)
    for name, method in METHODS.items():
        options = {"grid": (1, 2, 2)} if name == "hybrid" else {}
        first, *others = trained(functools.partial(method.load(), **options), 4, **how)
        assert all(np.array_equal(first.params.flat, other.params.flat) for other in others), name
        if name in ("local", "elastic", "gossip"):
            assert first.history[1]["loss"] < first.history[0]["loss"], name
        else:
            np.testing.assert_allclose(first.params.flat, one.params.flat, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [Pipeline, Sharded])
def test_a_training_is_that_of_one_rank_and_goes_on_with_other_ranks(make, optimizer, tmp_path):
    file, how = tmp_path / "a.npz", {"optimizer": optimizer}
    trained(Sharded, 2, save=file, epochs=1, **how)
    one = train(DIGITS, **HOW, epochs=2, **how)
    ranks = trained(make, 4, resume=file, save=file, epochs=2, **how)
    for own in ranks:
        np.testing.assert_allclose(own.params.flat, one.params.flat, atol=1e-9)
        assert own.history[1]["test_accuracy"] == one.history[1]["test_accuracy"]
        assert own.history[1]["loss"] == pytest.approx(one.history[1]["loss"], rel=1e-6)
    assert (checkpoint.load(file).params.flat == ranks[0].params.flat).all()
