import pytest

from cnnlab.ranks.slow.requests import Wire
from cnnlab.ranks.virtual.link import Link


def test_messages_of_a_rank_go_out_one_after_the_other():
    wire = Wire(Link(latency=1.0, bandwidth=100.0))
    assert wire.send(200, 10.0) == (12.0, 13.0)
    assert wire.send(100, 10.5) == (13.0, 14.0)  # waits for the first
    assert wire.send(100, 20.0) == pytest.approx((21.0, 22.0))
