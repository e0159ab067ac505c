"""What passes through one server, several, and two levels: counted as predicted."""

import pytest

from cnnlab.measure.server_levels import passed


def test_several_servers_share_the_bytes_and_two_levels_cut_the_partners():
    ways = {"one": {}, "four": {"servers": 4}, "levels": {"groups": 2}}
    found = {name: passed(8, 50_000, n_each=16, **way) for name, way in ways.items()}
    for name, partners in (("one", 8), ("four", 8 / 4), ("levels", 1 + 8 / 2)):
        assert found[name].busiest == pytest.approx(2 * 8 * 50_000 * partners, rel=0.03)
    assert found["four"].images > 2.5 * found["one"].images


def test_the_same_each_time_and_less_to_gain_where_messages_are_short():
    assert passed(4, 100, "any", servers=2) == passed(4, 100, "any", servers=2)
    short, long = (passed(8, n, servers=4).images / passed(8, n).images for n in (100, 50_000))
    assert short < 1.3 < long
