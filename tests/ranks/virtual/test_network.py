"""What messages and computing cost: links, the networks made of them, and the ranks' pace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draw

from cnnlab.ranks.virtual import Link, World
from cnnlab.ranks.virtual.network import (  # fmt: skip
    CUBE_MESH,
    Pace,
    all_to_all,
    dgx1,
    network_of,
    parse,
    ring,
    two_level,
)

LINK = Link(latency=1.0, bandwidth=100.0, call=0.0, eager=10**6)


def arrivals(network, ends, n_bytes=100):
    """When messages that leave at 0 arrive, asked for in this order."""
    busy = {}
    return [network.carry(busy, *pair, n_bytes, 0.0)[1] for pair in ends]


@given(draw.integers(1, 40), draw.data())
def test_a_route_goes_from_hop_to_hop_and_costs_their_latencies(size, data):
    networks = [all_to_all(LINK), ring(size, LINK), two_level(3, LINK, LINK)]
    network = data.draw(draw.sampled_from(networks + [dgx1()] * (size <= 8)))
    a, b = data.draw(draw.tuples(*[draw.integers(0, size - 1)] * 2))
    route = network.route(a, b)
    assert (route == ()) == (a == b) and len({hop.key for hop in route}) == len(route)
    assert len(network.route(b, a)) == len(route)
    taken = sum(hop.link.latency for hop in route)
    slowest = max((100 / hop.link.bandwidth for hop in route), default=0)
    assert arrivals(network, [(a, b)]) == pytest.approx([taken + slowest])


def test_any_two_ranks_have_a_link_of_their_own_each_way():
    assert arrivals(all_to_all(LINK), [(0, 1), (1, 0), (0, 2), (0, 1)]) == [2, 2, 2, 3]


def test_on_a_ring_messages_go_the_shorter_way_and_share_its_links():
    network = ring(8, LINK)
    assert [len(network.route(0, rank)) for rank in range(8)] == [0, 1, 2, 3, 4, 3, 2, 1]
    assert [hop.key for hop in network.route(1, 7)] == [(1, 0), (0, 7)]
    assert arrivals(network, [(0, 2), (1, 3), (2, 1)]) == [3, 4, 2]


def test_the_ranks_of_a_node_share_its_link_outside():
    network = two_level(4, Link(0.5, 1000.0), LINK)
    assert arrivals(network, [(0, 1), (2, 3)]) == pytest.approx([0.6, 0.6])
    assert arrivals(network, [(0, 4), (1, 8), (5, 2)]) == [2, 3, 2]


def test_links_of_a_dgx1_are_single_double_or_through_the_cpus():
    network = dgx1()
    for gpu in range(8):
        assert sum(n for pair, n in CUBE_MESH.items() if gpu in pair) == 6
        assert sum(gpu in pair for pair in CUBE_MESH) == 4
    double, single, none = (
        arrivals(network, [ends], 10**9)[0] for ends in [(0, 3), (0, 1), (0, 7)]
    )
    assert single == pytest.approx(2 * double, rel=1e-3) and none > 1.5 * single
    assert network.route(0, 7)[0].key == network.route(1, 6)[0].key


@pytest.mark.parametrize(
    "text, to, hops",
    [
        ("10us,1GB/s", 7, 1),
        ("ring: 1us,1GB/s", 5, 4),
        ("nodes of 2: 1us,9GB/s; 2us,1GB/s", 7, 2),
        ("dgx1", 7, 3),
    ],
)
def test_a_network_is_read_from_its_text(text, to, hops):
    assert len(parse(text, 8).route(1, to)) == hops
    assert World(8, text).run(lambda comm: comm.allreduce(1)) == [8] * 8


@pytest.mark.parametrize(
    "text, latency, bandwidth",
    [("10us,1GB/s", 1e-5, 1e9), ("2 ms, 300 MB/s", 2e-3, 3e8), ("0.5µs,12.5GB/s", 5e-7, 1.25e10)],
)
def test_a_link_is_read_from_its_text(text, latency, bandwidth):
    link = Link.parse(text)
    assert (link.latency, link.bandwidth) == pytest.approx((latency, bandwidth))


def test_a_link_says_what_it_is():
    assert str(Link(2e-6, 2e9)) == "links of 2 µs and 2 GB/s"
    assert str(Link(2e-3, 1e8)) == "links of 2 ms and 100 MB/s"
    assert str(Link(0, 20)) == "links of 0 µs and 20 B/s"


def computing(comm):
    for _ in range(200):
        comm.compute(1.0)
    return comm.clock()


def test_some_ranks_may_have_a_speed():
    assert World(3, speed={1: 2.5}).run(computing) == [200, 500, 200]


def test_jitter_is_drawn_from_the_seed_for_each_rank_and_keeps_the_median():
    first, again, other = (World(3, jitter=0.3, seed=s).run(computing) for s in (1, 1, 2))
    assert first == again != other and len(set(first)) == 3
    pace = Pace(2, {}, jitter=0.5)
    alone = [Pace(2, {}, jitter=0.5).factor(0) for _ in range(2)]
    drawn = [pace.factor(0) for _ in range(1001)]
    assert alone == drawn[:1] * 2 and 0.9 < np.median(drawn) < 1.1 and max(drawn) > 2


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: World(9, "dgx1"), "n_ranks: expected at most 8 on a DGX-1's NVLink, got 9"),
        (
            lambda: network_of(1.0, 4),
            "network: expected an Interconnect, a Link or a text, got float",
        ),
        *(
            (lambda text=text: network_of(text, 4), "link: expected a text such as 10us,1GB/s, got")
            for text in ("torus", "", "10us", "1GB/s,10us", "10 parsec,1GB/s", "10us,1GB")
        ),
        *(
            (lambda name=name: Link(**{name: -1}), f"{name}: expected")
            for name in ("latency", "call", "eager", "bandwidth")
        ),
        *(
            (lambda wrong=wrong: World(2, **wrong), f"{next(iter(wrong))}: expected")
            for wrong in ({"speed": {5: 1}}, {"speed": {1: 0}}, {"jitter": -1})
        ),
        (lambda: World(0), "n_ranks: expected a whole number of at least 1, got 0"),
    ],
)
def test_what_is_no_network_is_refused(make, text):
    with pytest.raises((TypeError, ValueError), match=f"^{text}"):
        make()
