import numpy as np

from cnnlab.data import load
from cnnlab.lessons import lesson_56
from cnnlab.network import Network
from cnnlab.training import Sgd

DATA = load("digits", 400, 200)


def by_chance(values, chances):
    return np.floor(values + chances)


def test_weights_lie_on_the_grid_and_where_a_step_leads_in_the_mean():
    params, grads = Network().parameters(), Network().zeros()
    grads.flat[:] = 0.3 / 8
    group = lesson_56.OnGrid(1.0, 1 / 8, by_chance)
    group.begin(params)
    params.flat[:] = 0
    for _ in range(10):
        group.update(params, grads, 1)
    assert (params.flat * 8 == np.round(params.flat * 8)).all()
    np.testing.assert_allclose(params.flat.mean(), -10 * 0.3 / 8, rtol=0.05)


def test_a_fine_grid_learns_as_none_does():
    free = lesson_56.accuracy(DATA, Sgd(0.5), epochs=8)
    fine = lesson_56.accuracy(DATA, lesson_56.OnGrid(0.5, 2.0**-20, by_chance), epochs=8)
    assert free > 0.3 and abs(free - fine) < 0.02
