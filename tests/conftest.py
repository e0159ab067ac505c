import signal

import pytest
from hypothesis import settings

# Tests interrupt programs. Those of a shell's background job would ignore it, and so would theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = tuple(  # seconds of one worker: 400, 250, 200, 160, 110
    f"tests/{name}.py"
    for name in ("lessons/test_break", "check/test_answers", "course/test_assignment",
                 "kernels/test_registers", "course/test_pages")
)  # fmt: skip

settings.register_profile("untimed", deadline=None)  # some compile, and machines differ
settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    """The longest files come first, so that no worker has one left when the others are done."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.fixture(autouse=True)
def lenient(monkeypatch):
    """Checks return False, and measure as asked, whatever is set where the tests run."""
    monkeypatch.delenv("CNNLAB_STRICT", raising=False)
    monkeypatch.delenv("CNNLAB_REPEATS", raising=False)


@pytest.fixture(scope="session")
def ipython():
    """The shell of IPython, of which a process has one."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.testing.globalipapp import start_ipython

    InteractiveShell.clear_instance()  # another test's
    return start_ipython()
