"""One cluster for all answers of the lessons on ranks; a new one where an answer has closed it."""

import atexit
import contextlib

from cnnlab.check.collective import MOST, collective
from cnnlab.ranks.cluster import cluster

stack = contextlib.ExitStack()
atexit.register(stack.close)
running = []


def check(operation, answer):
    """`collective` on the shared cluster."""
    if not running or running[-1].closed:
        running.append(stack.enter_context(cluster(MOST)))
    answer.__module__ = "__main__"  # as in a notebook: the ranks cannot import it, so it is sent
    return collective(operation, answer, running[-1], patience=5)
