"""Under pytest the lessons measure with few repeats: what they prove does not depend on that."""

import os
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Set CNNLAB_REPEATS, unless it is set, for the kernels of the lessons in this folder."""
    with pytest.MonkeyPatch.context() as patch:
        if Path(__file__).parent in item.path.parents:
            patch.setenv("CNNLAB_REPEATS", os.environ.get("CNNLAB_REPEATS", "1"))
        return (yield)
