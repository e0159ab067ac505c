import pytest

from cnnlab.course.grading import sandbox


@pytest.fixture(scope="session")
def packages():
    """Folders with a cnnlab without answers, as the grader makes them once for a class."""
    with sandbox.packages() as folders:
        yield folders
