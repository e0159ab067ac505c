import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # some compile, and machines differ
settings.load_profile("untimed")

# The files that take longest are begun first, then the lessons, so that the end is even.
LONG = (
    "test_break", "test_assignment", "test_server", "test_cut", "test_job", "test_answers",
    "test_averaging", "test_compressed", "test_cluster", "test_render", "test_handout",
)  # fmt: skip


def pytest_configure(config):
    config.option.loadscopereorder = False  # pytest-xdist would begin with what has most tests


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.path.stem not in LONG, item.path.suffix != ".ipynb"))


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
