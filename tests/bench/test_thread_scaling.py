import numpy as np

from cnnlab.bench import thread_scaling
from cnnlab.bench.contestants import Contestant
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.kernels.compiled import allreduce_memory
from cnnlab.runtime import thread_pool


def test_as_many_networks_as_threads_are_trained_on_their_own(monkeypatch):
    made = []

    class Noted(thread_scaling.Replica):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(thread_scaling, "Replica", Noted)
    one = Contestant(KERNELS["vector"], load("digits", 64, 10), 16)
    on_their_own = thread_scaling.OnTheirOwn(one, 3)
    with on_their_own.threads:
        on_their_own(2)
    assert [bool(replica.grads.flat.any()) for replica in made] == [True, True, False]
    assert len({id(replica.params.flat) for replica in [one.replica, *made]}) == 4


def test_every_thread_comes_to_every_barrier():
    counts = allreduce_memory.counts()
    with thread_pool.threads(min(2, thread_pool.size())) as n_threads:
        parts = np.zeros((n_threads, 16), np.float32)
        thread_scaling.barriers(parts, np.zeros(5, np.float32), counts, 7)
    assert counts[allreduce_memory.BARRIER] == 7 * n_threads
