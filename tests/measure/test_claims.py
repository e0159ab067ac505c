import pytest

from cnnlab.measure import claims
from cnnlab.measure.timing import Timing

ONE = Timing("one thread", (2.0, 2.1, 1.9, 2.0, 2.0, 2.1))
TWO = Timing("two threads", (1.0, 1.0, 1.0, 1.1, 1.1, 1.0))
AGAIN = Timing("one more", (2.1, 2.0, 2.0, 2.0, 1.9, 2.1))


def test_the_faster_is_named_first_whichever_comes_first():
    said = "A step is 1.95 times faster with two threads than with one thread (1.82 to 2.10)."
    assert claims.compare(TWO, ONE, "A step") == claims.compare(ONE, TWO, "A step") == said


def test_where_the_interval_holds_one_no_difference_is_claimed():
    said = claims.compare(ONE, AGAIN, "A step")
    assert said.startswith("A step shows no difference between one thread and one more in this run")
    assert "faster" not in said


def test_the_whole_interval_decides():
    assert claims.faster(TWO, ONE) and claims.faster(TWO, ONE, by=1.8)
    assert not claims.faster(TWO, ONE, by=1.9)  # its lower end is 1.82
    assert not claims.faster(ONE, TWO) and not claims.faster(ONE, AGAIN)
    assert claims.alike(ONE, AGAIN, within=1.2) and not claims.alike(ONE, AGAIN, within=1.01)
    assert not claims.alike(ONE, TWO) and not claims.alike(TWO, ONE)
    with pytest.raises(ValueError, match="by: expected a positive number, got 0"):
        claims.faster(ONE, TWO, by=0)


def test_a_claim_is_told_and_only_rendering_insists(monkeypatch, capsys):
    monkeypatch.delenv(claims.STRICT, raising=False)
    claims.claim("Two beat one.", True)
    claims.claim("One beats two.", False)
    said = "✓ Two beat one.\n✗ Not on this machine: One beats two.\n"
    assert capsys.readouterr().out == said
    monkeypatch.setenv(claims.STRICT, "1")
    claims.claim("Two beat one.", True)
    with pytest.raises(AssertionError, match=r"^claim: .* One beats two\.$"):
        claims.claim("One beats two.", False)
    with pytest.raises(TypeError, match=r"held: expected True or False, got 1\.5"):
        claims.claim("One beats two.", 1.5)
