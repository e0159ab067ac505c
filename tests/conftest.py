import signal

import pytest
from hypothesis import settings

# Tests interrupt programs. Those of a shell's background job would ignore it, and so would theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("untimed", deadline=None)  # some compile, and machines differ
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def lenient(monkeypatch):
    """Checks return False, and measure as asked, whatever is set where the tests run."""
    monkeypatch.delenv("CNNLAB_STRICT", raising=False)
    monkeypatch.delenv("CNNLAB_REPEATS", raising=False)


@pytest.fixture(scope="session")
def ipython():
    """The shell of IPython, of which a process has one."""
    from IPython.testing.globalipapp import start_ipython

    return start_ipython()
