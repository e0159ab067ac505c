import os

import pytest

from cnnlab.runtime.failures import environment, few


def test_few_repeats_where_the_variable_asks_for_them(monkeypatch):
    monkeypatch.delenv("CNNLAB_REPEATS", raising=False)
    assert few(11) == 11
    monkeypatch.setenv("CNNLAB_REPEATS", "3")
    assert few(11) == 3 and few(2) == 2
    for wrong in ("0", "-1", "many", ""):
        monkeypatch.setenv("CNNLAB_REPEATS", wrong)
        with pytest.raises(ValueError, match=f"CNNLAB_REPEATS: expected .* got '{wrong}'"):
            few(11)


def test_variables_are_set_for_a_while_whatever_happens(monkeypatch):
    monkeypatch.setenv("CNNLAB_HAS_BEEN", "before")
    monkeypatch.delenv("CNNLAB_HAS_NOT_BEEN", raising=False)
    with pytest.raises(KeyError):
        with environment({"CNNLAB_HAS_BEEN": "within", "CNNLAB_HAS_NOT_BEEN": "within"}):
            assert os.environ["CNNLAB_HAS_BEEN"] == os.environ["CNNLAB_HAS_NOT_BEEN"] == "within"
            raise KeyError
    assert os.environ["CNNLAB_HAS_BEEN"] == "before"
    assert "CNNLAB_HAS_NOT_BEEN" not in os.environ
