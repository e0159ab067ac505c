import matplotlib
import matplotlib.pyplot as plt
import pytest

from cnnlab.measure.timing import Timing
from cnnlab.plots import challenge

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "moved, said",
    [
        ({"a": 4000, "b": 2000}, "relu: “b” moves the least, 2 times what any kernel must"),
        ({"a": 4000, "b": 1000, "c": 1000}, "relu: 2 of 3 move the least, 1 times"),
    ],
)
def test_without_a_gpu_the_bytes_are_drawn(monkeypatch, moved, said):
    monkeypatch.setattr(challenge.cuda, "gpu", lambda: (False, ""))
    monkeypatch.setattr(challenge, "count", lambda *_: (moved, 1000))
    ax = challenge.rungs("relu", {})
    assert ax.figure.get_suptitle().startswith(said)
    assert "kB moved" in ax.get_xlabel()


def test_on_a_gpu_the_times_are_drawn(monkeypatch):
    timings = {name: Timing(name, (t,) * 9) for name, t in {"a": 2e-5, "b": 1e-5}.items()}
    monkeypatch.setattr(challenge.cuda, "gpu", lambda: (True, "GPU: Tesla T4"))
    monkeypatch.setattr(challenge, "event_times", lambda *_: timings)
    ax = challenge.rungs("relu", {})
    assert ax.figure.get_suptitle() == "relu, on GPU: Tesla T4: the fastest is “b”"
    assert "times faster than a" in ax.get_xlabel() and "batch of 256" in ax.get_xlabel()
