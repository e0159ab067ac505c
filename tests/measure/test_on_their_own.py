from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.measure import bench
from cnnlab.measure.bench import Contestant


def test_as_many_networks_as_threads_are_trained_on_their_own(monkeypatch):
    made = []

    class Noted(bench.Replica):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(bench, "Replica", Noted)
    one = Contestant(KERNELS["vector"], load("digits", 64, 10), 16)
    several = bench.OnTheirOwn(one, 3)
    with several.threads:
        several(2)
    assert [bool(replica.grads.flat.any()) for replica in made] == [True, True, False]
    assert len({id(replica.params.flat) for replica in [one.replica, *made]}) == 4
