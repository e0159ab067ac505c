import pytest

from cnnlab.measure.timing import Timing
from cnnlab.plots import challenge


@pytest.mark.parametrize("floor, bound", [(0.5, ["roof"]), (None, [])])
def test_a_challenge_is_drawn_beside_the_rungs_with_its_roof(monkeypatch, capsys, floor, bound):
    seconds = {"rung": 8.0, "vector": 1.0, "mine": 2.0}
    timings = {name: Timing(name, (time,) * 3) for name, time in seconds.items()}
    monkeypatch.setattr(challenge, "exercise", lambda *_: True)
    monkeypatch.setattr(challenge, "checked", lambda *_: None)
    monkeypatch.setattr(challenge.timing, "compare", lambda calls, repeats: timings)
    monkeypatch.setattr(challenge, "floor", lambda *_: floor)
    ax = challenge.challenge("dense_forward", print, {"rung": print})
    assert [label.get_text() for label in ax.get_yticklabels()] == list(seconds)
    assert ax.figure.get_suptitle() == "Your dense_forward is at 50% of vector"
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if "×" not in text] == bound
    said = capsys.readouterr().out
    assert said.startswith("Your dense_forward reaches 50% of the speed of vector")
    assert ("25% of the roof" in said) == bool(floor)
    if floor:
        assert ax.lines[-1].get_xdata()[0] == 16  # times faster than the first rung


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
    assert "times as fast as a" in ax.get_xlabel() and "batch of 256" in ax.get_xlabel()
