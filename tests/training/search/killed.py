"""A search with a journal, for a test that kills it: the journal's path is the argument."""

import sys
import time

from cnnlab.training.search import Here, Journal, run
from tests.training.search.examples import hill, searches


def slowly(trial, state):
    """Take a while, so that the kill comes in the middle."""
    time.sleep(0.005)
    return hill(trial, state)


if __name__ == "__main__":
    run(Journal(searches()["population"], sys.argv[1]), Here(slowly))
