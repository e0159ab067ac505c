import pytest

from tests.ranks.segments import files, noting_segments


@pytest.fixture
def no_memory_left():
    """Check that the ranks of a test leave no shared-memory file."""
    with noting_segments() as ours:
        yield
    assert not ours & files()
