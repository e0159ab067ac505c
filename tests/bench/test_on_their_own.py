from cnnlab.bench import on_their_own
from cnnlab.bench.contestants import Contestant
from cnnlab.data import load
from cnnlab.kernels import KERNELS


def test_as_many_networks_as_threads_are_trained_on_their_own(monkeypatch):
    made = []

    class Noted(on_their_own.Replica):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(on_their_own, "Replica", Noted)
    one = Contestant(KERNELS["vector"], load("digits", 64, 10), 16)
    several = on_their_own.OnTheirOwn(one, 3)
    with several.threads:
        several(2)
    assert [bool(replica.grads.flat.any()) for replica in made] == [True, True, False]
    assert len({id(replica.params.flat) for replica in [one.replica, *made]}) == 4
