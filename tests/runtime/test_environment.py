import os

import pytest

from cnnlab.runtime.failures import environment


def test_variables_are_set_for_a_while_whatever_happens(monkeypatch):
    monkeypatch.setenv("CNNLAB_HAS_BEEN", "before")
    monkeypatch.delenv("CNNLAB_HAS_NOT_BEEN", raising=False)
    with pytest.raises(KeyError):
        with environment({"CNNLAB_HAS_BEEN": "within", "CNNLAB_HAS_NOT_BEEN": "within"}):
            assert os.environ["CNNLAB_HAS_BEEN"] == os.environ["CNNLAB_HAS_NOT_BEEN"] == "within"
            raise KeyError
    assert os.environ["CNNLAB_HAS_BEEN"] == "before"
    assert "CNNLAB_HAS_NOT_BEEN" not in os.environ
