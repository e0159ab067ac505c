from dataclasses import replace

import numpy as np
import pytest

from cnnlab.ranks.virtual import Link, World, all_to_all, dgx1, ring, two_level
from cnnlab.ranks.virtual.topology import CUBE_MESH, network_of, one_memory, parse

LINK = Link(latency=1.0, bandwidth=100.0, call=0.0, eager=10**6)


def arrivals(network, ends, n_bytes=100):
    """When messages that leave at 0 arrive, asked for in this order."""
    busy = {}
    return [network.carry(busy, *pair, n_bytes, 0.0)[1] for pair in ends]


def test_any_two_ranks_have_a_link_of_their_own_each_way():
    ends = [(0, 1), (1, 0), (0, 2), (0, 1)]
    assert arrivals(all_to_all(LINK), ends) == [2, 2, 2, 3]
    assert arrivals(all_to_all(LINK), [(1, 1)]) == [0]


def test_on_a_ring_messages_go_the_shorter_way_and_share_its_links():
    network = ring(8, LINK)
    assert [len(network.route(0, rank)) for rank in range(8)] == [0, 1, 2, 3, 4, 3, 2, 1]
    assert [hop.key for hop in network.route(1, 7)] == [(1, 0), (0, 7)]
    assert arrivals(network, [(0, 2), (1, 3), (2, 1)]) == [3, 4, 2]


def test_the_ranks_of_a_node_share_its_link_outside():
    network = two_level(4, Link(0.5, 1000.0), LINK)
    assert arrivals(network, [(0, 1), (2, 3)]) == pytest.approx([0.6, 0.6])
    assert arrivals(network, [(0, 4), (1, 8), (5, 2)]) == [2, 3, 2]


def test_in_one_memory_long_messages_of_a_pair_come_one_after_the_other():
    ends = [(0, 1), (1, 0), (0, 2)]
    assert arrivals(one_memory(LINK), ends) == [2, 2, 2]
    assert arrivals(one_memory(replace(LINK, eager=99), handshake=0.5), ends) == [2.5, 5, 2.5]
    assert arrivals(one_memory(replace(LINK, eager=99)), [(1, 1)]) == [0]


def test_links_of_a_dgx1_are_single_double_or_through_the_cpus():
    network = dgx1()
    for gpu in range(8):
        assert sum(n for pair, n in CUBE_MESH.items() if gpu in pair) == 6
        assert sum(gpu in pair for pair in CUBE_MESH) == 4
    double, single, none = (
        arrivals(network, [ends], 10**9)[0] for ends in [(0, 3), (0, 1), (0, 7)]
    )
    assert single == pytest.approx(2 * double, rel=1e-3) and none > 1.5 * single
    assert len(arrivals(network, [(0, 7), (1, 6)])) == 2
    assert network.route(0, 7)[0].key == network.route(1, 6)[0].key


@pytest.mark.parametrize(
    "text, hops",
    [
        ("10us,1GB/s", 1),
        ("ring: 1us,1GB/s", 4),
        ("nodes of 2: 1us,9GB/s; 2us,1GB/s", 2),
        ("dgx1", 3),
    ],
)
def test_a_network_is_read_from_its_text(text, hops):
    assert len(parse(text, 8).route(1, 5 if hops == 4 else 7)) == hops
    assert World(8, text).run(lambda comm: comm.allreduce(1)) == [8] * 8


def test_what_is_no_network_is_refused():
    with pytest.raises(ValueError, match="n_ranks: expected at most 8 on a DGX-1's NVLink, got 9"):
        World(9, "dgx1")
    with pytest.raises(ValueError, match="link: expected a text such as"):
        network_of("torus", 4)
    with pytest.raises(TypeError, match="network: expected a Network, a Link or a text, got float"):
        network_of(1.0, 4)


def test_many_at_once_wait_for_the_link_that_they_share():
    def program(comm):
        if comm.rank < 4:
            comm.Send(np.zeros(1000, np.uint8), comm.rank + 4)
        else:
            comm.Recv(np.zeros(1000, np.uint8), comm.rank - 4)
        return comm.clock()

    apart = max(World(8, all_to_all(LINK)).run(program))
    shared = max(World(8, two_level(4, LINK, LINK)).run(program))
    assert shared > 3 * apart
