import numpy as np

from cnnlab.training.search import Here, RandomSearch, Swarm, run
from tests.training.search.examples import SPACE, hill


def test_no_particle_is_in_two_trainings():
    search = Swarm(SPACE, 1, 100, size=4)
    assert [search.ask() is None for _ in range(5)] == [False] * 4 + [True]


def test_a_particle_moves_as_the_formula_says():
    search = Swarm(SPACE, 1, 100, size=2)
    trials = [search.ask(), search.ask()]
    a, b = search.particles
    search.tell(trials[0], 0.1)
    search.tell(trials[1], 0.9)
    place, velocity, target = a.place.copy(), a.velocity.copy(), b.place.copy()
    state = search.rng.bit_generator.state
    search.ask()
    search.rng.bit_generator.state = state
    _, common = search.rng.random((2, 2))
    velocity = 0.7298 * velocity + 1.49618 * common * (target - place)  # it is at its own best
    there = place + velocity
    assert np.allclose(a.place, there.clip(0, 1))
    assert np.allclose(a.velocity, np.where(there == there.clip(0, 1), velocity, 0))


def test_at_a_wall_a_particle_stops():
    search = Swarm(SPACE, 1, 100, size=1)
    one = search.particles[0]
    search.tell(search.ask(), 0.5)
    one.velocity[:] = 5, 0.01
    search.ask()
    assert (one.place[0], one.velocity[0]) == (1, 0) and one.velocity[1] == 0.01 * 0.7298


def test_a_particle_remembers_its_best_place_only():
    search = Swarm(SPACE, 1, 100, size=1)
    one = search.particles[0]
    search.tell(search.ask(), 0.5)
    first = one.place.copy()
    search.tell(search.ask(), 0.4)
    assert np.array_equal(one.best_place, first) and one.best == 0.5


def test_it_contracts_to_the_best_place():
    done = run(Swarm(SPACE, 1, 300), Here(hill))
    last = [one.report["test"] for one in done[-30:]]
    drawn = [one.report["test"] for one in run(RandomSearch(SPACE.draw, 1, 300), Here(hill))]
    assert np.median(last) < np.median(drawn) / 100
