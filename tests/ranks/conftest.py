import glob

import pytest

from cnnlab.ranks import segments


@pytest.fixture
def no_memory_left():
    """Check that nothing is left of the memory that ranks share."""

    def files():
        return {file for start in segments.NAMES for file in glob.glob(f"{start}*")}

    before = files()
    yield
    assert files() <= before
