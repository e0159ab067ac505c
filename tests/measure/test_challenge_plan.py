import pytest

from cnnlab.measure.challenge_plan import challenge_plan

NAMES = ("data", "server", "local every 8")


def test_a_challenge_says_what_the_plan_costs_or_what_is_missing(capsys):
    assert challenge_plan(..., 4, 8, NAMES) is None
    assert challenge_plan("10us,1GB/s", 4, ..., NAMES) is None
    assert capsys.readouterr().out.splitlines() == ["challenge: not yet answered"] * 2
    lost = challenge_plan("10us,1GB/s", 3, 8, NAMES, "report")
    told = capsys.readouterr().out
    assert 1 <= lost < 1.1 and "planned: local every 8; fastest: local every 8" in told
    assert "rank correlation 1.00" in told


def test_too_many_ranks_are_refused():
    with pytest.raises(ValueError, match="n_ranks: expected 2 to 16, got 17"):
        challenge_plan("10us,1GB/s", 17, 32, NAMES)
