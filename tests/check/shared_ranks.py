"""One cluster for all answers of the lessons on ranks; a new one where an answer has closed it."""

import atexit
import contextlib

from cnnlab.check.collective import MOST
from cnnlab.ranks.cluster import cluster

stack = contextlib.ExitStack()
atexit.register(stack.close)
running = []


@contextlib.contextmanager
def shared(n_ranks):
    """The shared cluster, in place of `cluster`."""
    assert n_ranks == MOST
    if not running or running[-1]._closed:
        running.append(stack.enter_context(cluster(n_ranks)))
    yield running[-1]


def as_in_a_notebook(answers):
    """The ranks cannot import functions of a file that was run: let them be sent."""
    for _, answer, *_ in answers:
        if hasattr(answer, "__code__"):
            answer.__module__ = "__main__"
