"""Pieces of arrays travel to those who need them, and partial sums back; nothing else travels."""

import numpy as np
import pytest

from cnnlab.distributed.model import Exchange
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World

WHOLE = np.random.default_rng(0).random((2, 7, 3))


def sent(world):
    return sum(event.n_bytes for event in world.events if event.kind == "send")


CASES = {
    "all-gather": lambda rank, a, b: (0, 7),
    "halo": lambda rank, a, b: (max(a - 1, 0), min(b + 1, 7)),
    "nothing": lambda rank, a, b: (0, 0),
    "home": lambda rank, a, b: (a, b),
    "first": lambda rank, a, b: (0, 7) if rank == 0 else (0, 0),
    "swap": lambda rank, a, b: (7 - b, 7 - a),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [1, 2, 3, 9])  # the last: some own nothing
def test_what_is_fetched_is_there_and_what_is_given_back_is_added_up(case, n):
    owned = [block(rank, n, 7) for rank in range(n)]
    needed = [CASES[case](rank, *owned[rank]) for rank in range(n)]

    def program(comm):
        exchange = Exchange(comm, owned, needed, 1)
        result = exchange.fetch(WHOLE[:, slice(*owned[comm.rank])].copy())
        assert (result == WHOLE[:, slice(*needed[comm.rank])]).all()
        return exchange.give_back(result * (comm.rank + 1))

    times = np.zeros(7)
    for rank, (a, b) in enumerate(needed):
        times[a:b] += rank + 1
    for rank, back in enumerate(World(n).run(program)):
        mine = slice(*owned[rank])
        np.testing.assert_allclose(back, WHOLE[:, mine] * times[mine, None])


def test_only_what_is_needed_travels():
    def travels(case, n=3):
        owned = [block(rank, n, 7) for rank in range(n)]
        needed = [CASES[case](rank, *owned[rank]) for rank in range(n)]
        world, row = World(n), WHOLE[:, :1].nbytes

        def program(comm):
            mine = WHOLE[:, slice(*owned[comm.rank])].copy()
            Exchange(comm, owned, needed, 1).fetch(mine)

        world.run(program)
        return {event.n_bytes // row for event in world.events if event.n_bytes}, sent(world)

    assert travels("home") == (set(), 0)
    assert travels("halo")[0] == {1}
    assert travels("all-gather")[0] == {2, 3}
