import glob

import psutil
import pytest

from cnnlab.ranks import shared_memory_files


@pytest.fixture
def no_memory_left():
    """Check that the ranks leave no shared-memory file."""

    def files():
        return {file for start in shared_memory_files.NAMES for file in glob.glob(f"{start}*")}

    before = files()
    yield
    in_use = shared_memory_files.mapped_by(psutil.pids())  # by another program's ranks
    assert files() - in_use <= before
