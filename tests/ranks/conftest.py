import glob

import pytest

from cnnlab.ranks import shared_memory_files


@pytest.fixture
def no_memory_left():
    """Check that nothing is left of the memory that ranks share."""

    def files():
        return {file for start in shared_memory_files.NAMES for file in glob.glob(f"{start}*")}

    before = files()
    yield
    assert files() <= before
