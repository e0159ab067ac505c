"""Whole training steps on several threads: as a team, and started for each step."""

import numpy as np
import pytest

from cnnlab.check import inputs
from cnnlab.data import load
from cnnlab.kernels import CONTRACT, KERNELS, threads
from cnnlab.kernels.allreduce import OFF, ROLL
from cnnlab.kernels.registers import LANES
from cnnlab.network import Network
from cnnlab.runtime import thread_pool
from cnnlab.training import train
from tests.networks import report_network
from tests.programs import run

TWO = pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")


def crew_and_batch(n=2 * LANES):
    network = report_network(2, 28, 28)
    params = network.parameters()
    x = np.random.default_rng(0).random((n, 2, 28, 28), np.float32)
    return params, x, np.arange(n) % 10


@TWO
def test_each_thread_works_on_its_own_part_of_the_batch_in_memory_of_its_own():
    params, x, labels = crew_and_batch()
    with thread_pool.threads(2):
        crew = threads.crew_of(params.network, len(x))
        held = crew.flat[:, :, : x[0].size * LANES]  # where the images lie
        held[:] = np.nan
        threads.loss_and_gradients(params, x, labels, params.network.zeros())
    for t, part in enumerate(np.split(x, 2)):
        vectors = held[t * threads.APART].reshape(2, -1, LANES)[: len(part) // LANES]
        assert (vectors.swapaxes(1, 2).reshape(part.shape) == part).all()


@pytest.mark.parametrize("n_images, expected", [(1, 1), (LANES, 1), (LANES + 1, 2), (64, 2)])
@TWO
def test_no_thread_is_started_for_which_there_is_no_vector_of_images(n_images, expected):
    params, *_ = crew_and_batch(n_images)
    with thread_pool.threads(2):
        crew = threads.crew_of(params.network, n_images)
    assert len(crew.parts) == expected


@pytest.mark.parametrize("n_threads", [n for n in (2, 3) if n <= thread_pool.size()])
def test_threads_started_for_each_step_find_the_same_bits(n_threads):
    digits = load("digits", 330)

    def trained():
        return train(digits, "threads", batch=50, epochs=2, n_threads=n_threads, progress=False)

    as_a_team = trained()
    with thread_pool.threads(n_threads):
        crew = threads.crew_of(as_a_team.params.network, 50)
    crew.counts[ROLL] = OFF  # as if they had once taken turns
    in_turns = trained()
    assert crew.counts[ROLL] == OFF
    threads.new_crew.cache_clear()
    assert (as_a_team.params.flat == in_turns.params.flat).all()
    losses = [[row["loss"] for row in run.history] for run in (as_a_team, in_turns)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@TWO
def test_a_team_is_called_each_time_and_not_again_once_its_threads_took_turns(monkeypatch):
    digits, params = load("digits", 64, 10), Network().parameters()
    arguments = digits.train_images, digits.train_labels, np.arange(64), 32, 0.1
    one_by_one, alone = threads.one_by_one, []
    monkeypatch.setattr(threads, "one_by_one", lambda *a: alone.append(True) or one_by_one(*a))
    with thread_pool.threads(2):
        crew = threads.crew_of(params.network, 32)
        for _ in range(2):
            threads.sgd_steps(params, Network().zeros(), *arguments)
            assert crew.counts[ROLL] == 2  # present, of this call
        assert not alone
        crew.counts[ROLL], before = OFF + 1, params.flat.copy()
        threads.sgd_steps(params, Network().zeros(), *arguments)
        assert crew.counts[ROLL] == OFF + 1 and alone == [True]
        assert (params.flat != before).any()
    threads.new_crew.cache_clear()


FEWER = """
from tests.kernels.test_threads import with_two
print(with_two().hex())
"""


def with_two():
    """The bytes of the parameters that a training on two threads finds."""
    run = train(load("digits", 64, 10), "threads", batch=32, n_threads=2, progress=False)
    return run.params.flat.tobytes()


@TWO
@pytest.mark.slow
def test_fewer_threads_than_asked_for_end_in_no_deadlock():
    """OpenMP may be told to give one thread only; other layers give two whatever it says."""
    limit = {"NUMBA_NUM_THREADS": "2", "OMP_THREAD_LIMIT": "1"}
    assert run(FEWER, **limit).stdout == f"{with_two().hex()}\n"


ONE_FILTER = inputs.case("one filter, whose images the threads share", 64, 3, 1, 12, 13, 5)


@TWO
@pytest.mark.parametrize("operation", [name for name in CONTRACT if name.startswith("conv")])
def test_the_number_of_threads_changes_no_bit(operation):
    """Threads that add to the same sums would add in another order, even where none is lost."""
    result = []
    for n_threads in (1, 2):
        arrays = inputs.draw(operation, ONE_FILTER)
        with thread_pool.threads(n_threads):
            KERNELS["threads"].kernel(operation)(*arrays.values())
        *_, output = arrays.values()
        result.append(output.tobytes())
    assert result[0] == result[1]
