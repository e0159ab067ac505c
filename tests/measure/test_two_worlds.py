import pytest

from cnnlab.measure import two_worlds
from cnnlab.ranks.virtual import Link, World


def test_virtual_ranks_take_longer_for_more_bytes_on_a_slower_link(monkeypatch):
    monkeypatch.setattr(two_worlds, "SIZES", (2, 1 << 14))
    slow = World(2, Link(1e-3, 1e6), measured=True).run(two_worlds.times, 2)[0]
    assert slow["butterfly, 65,536 B"] > 0.0655 > slow["butterfly, 8 B"] > 1e-3
    assert slow["a step, batch 256"] > 1e-3 + 9e3 / 1e6
    lines = two_worlds.table({name: (t, 2 * t) for name, t in slow.items()}).splitlines()
    assert len(lines) == 1 + len(slow) and all(line.endswith("2.00") for line in lines[1:])


def test_python_that_is_as_slow_on_real_ranks_is_not_relieved():
    assert two_worlds.virtual(Link(), 0.0, python=1.0).waking == 0
    relieved = two_worlds.virtual(Link(1e-3), 1e-4, python=0.0)
    assert 0 < relieved.waking < 1e-3 and relieved.measured
    assert relieved.link == Link(1e-3) and relieved.network.handshake == 1e-4


def test_an_image_has_its_seconds():
    assert 1e-8 < two_worlds.seconds_per_image() < 1e-2


@pytest.mark.mpi
def test_both_worlds_are_set_beside_each_other(capsys, monkeypatch):
    found = two_worlds.compare(repeats=2, rounds=1)
    assert len(found) == 13 and all(real > 0 < virtual for real, virtual in found.values())
    assert "virtual µs" in capsys.readouterr().out
