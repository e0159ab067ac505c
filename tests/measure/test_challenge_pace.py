from cnnlab.data import load
from cnnlab.lessons.lesson_53 import Compute, challenge_pace
from cnnlab.ranks.virtual import Link


def test_a_challenge_tells_the_time_or_what_is_missing(capsys):
    data = load("digits", 160, 40)
    how = {"compute": Compute(1e-5, 1e-6), "link": Link(), "n_numbers": 100, "n_ranks": 4}
    assert challenge_pace(..., data, 0.5, 1.0, **how) is None
    assert challenge_pace(lambda epochs: None, data, 0.5, 1.0, **how) is None
    assert capsys.readouterr().out.splitlines() == ["challenge: not yet answered"] * 2
    assert challenge_pace(lambda epochs: (16, 1e-9), data, 0.9, 1.0, epochs=1, **how) is None
    assert "after 1 epochs at best; the goal is 90%" in capsys.readouterr().out
    seconds = challenge_pace(lambda epochs: (16, 0.4), data, 0.0, 1.0, **how)
    said = capsys.readouterr().out
    assert f"{1 / seconds:.2f} times as fast as the best" in said and "on 4 ranks" in said
