import itertools

import pytest

from cnnlab.ranks import fit
from cnnlab.ranks.virtual import Link, World, one_memory


def test_the_fit_of_a_virtual_link_is_that_link():
    real = Link(latency=30e-6, bandwidth=2e9, call=2e-6, eager=20_000)
    found = World(3, real).run(fit.link, 3)[0]
    assert found.eager == 16384 and found.call == pytest.approx(real.call, rel=0.05)
    assert found.bandwidth == pytest.approx(real.bandwidth, rel=0.05)
    assert found.latency == pytest.approx(real.latency, rel=0.15)


@pytest.mark.parametrize("handshake", [0.0, 40e-6])
def test_the_fit_of_ranks_in_one_memory_is_that_memory(handshake):
    real = Link(latency=30e-6, bandwidth=2e9, call=2e-6, eager=20_000)
    found = World(3, one_memory(real, handshake)).run(fit.memory, 3)[0]
    assert found.link.eager == 16384 and found.link.call == pytest.approx(real.call, rel=0.05)
    assert found.link.bandwidth == pytest.approx(real.bandwidth, rel=0.05)
    assert found.link.latency == pytest.approx(real.latency, rel=0.05)
    assert found.handshake == pytest.approx(handshake, rel=0.05, abs=2e-6)


def test_half_of_what_an_exchange_makes_an_addition_slower_is_the_exchanges():
    class Told:  # 10 s to exchange; 20 to add to what has been sent, 5 once more
        rank, now, steps = 0, 0.0, itertools.cycle([0, 10, 20, 5])
        Sendrecv = bcast = staticmethod(lambda *arguments: arguments[0])

        def clock(self):
            self.now += next(self.steps)
            return self.now

    assert fit.exchange(Told(), 4, 3) == 17.5


@pytest.mark.mpi
def test_real_ranks_have_a_link():
    from tests.ranks.programs import run

    out, _ = run(2, "-c", REAL)
    latency, bandwidth, call, eager = map(float, out.split())
    assert 0 < latency + call < 1 and 1e6 < bandwidth and eager >= 0


REAL = """
from mpi4py import MPI
from cnnlab.ranks import fit
link = fit.link(MPI.COMM_WORLD, 3)
if MPI.COMM_WORLD.rank == 0:
    print(link.latency, link.bandwidth, link.call, link.eager)
"""
