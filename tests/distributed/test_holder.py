"""What ranks hold comes together after each epoch, so that one can test it, and keep it."""

import numpy as np
import pytest

from cnnlab.distributed.pipeline import Pipeline
from cnnlab.distributed.sharded import Sharded
from cnnlab.kernels import KERNELS
from cnnlab.ranks.virtual import World
from cnnlab.training import OPTIMIZERS, checkpoint, train
from tests.distributed.uncut import DIGITS

# In float64: some optimisers divide by what is little more than rounding.
HOW = {"batch": 8, "kernels": "reference", "rate": 0.01, "progress": False}


def trained(make, n=3, **options):
    how = HOW | options

    def program(comm):
        save = how.get("save") if comm.rank == 0 else None
        return train(DIGITS, method=make(comm), **(how | {"save": save}))

    return World(n, measured=True).run(program)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [Pipeline, Sharded])
def test_a_training_is_that_of_one_rank_with_every_optimiser(make, optimizer, tmp_path):
    file = tmp_path / "a.npz"
    how = {"epochs": 2, "optimizer": optimizer}
    one = train(DIGITS, **HOW, **how)
    ranks = trained(make, **how, save=file)
    for own in ranks:
        np.testing.assert_allclose(own.params.flat, one.params.flat, atol=1e-9)
        assert own.history[1]["test_accuracy"] == one.history[1]["test_accuracy"]
        assert own.history[1]["loss"] == pytest.approx(one.history[1]["loss"], rel=1e-6)
    assert (checkpoint.load(file).params.flat == ranks[0].params.flat).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_checkpoint_goes_on_with_another_number_of_ranks(optimizer, tmp_path):
    file, how = tmp_path / "a.npz", {"optimizer": optimizer}
    trained(Sharded, 2, save=file, epochs=1, **how)
    resumed = trained(Pipeline, 4, resume=file, epochs=2, **how)
    one = train(DIGITS, **HOW, epochs=2, **how)
    np.testing.assert_allclose(resumed[3].params.flat, one.params.flat, atol=1e-9)


def test_kernels_that_all_ranks_call_together_are_refused():
    apart = ", ".join(name for name in KERNELS if not KERNELS[name].together)
    with pytest.raises(ValueError, match=f"kernels: expected one of {apart}, .* got partitioned"):
        trained(Pipeline, kernels="partitioned")
