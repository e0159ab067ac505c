"""What the checks draw while a class is graded follows from a secret seed."""

import contextlib
import itertools
from collections.abc import Iterator
from unittest import mock

import numpy as np

from cnnlab.check import operation


@contextlib.contextmanager
def secret(seed: int) -> Iterator[None]:
    """Let all that the checks draw follow from a secret seed, also where they name a seed."""
    plain, counter = np.random.default_rng, itertools.count()

    def drawn(*seeds):
        if seeds and isinstance(seeds[0], np.random.Generator):
            return seeds[0]
        given = [2, next(counter)] if not seeds or seeds[0] is None else [1, *np.ravel(seeds[0])]
        return plain([seed, *map(int, given)])

    operation.references.cache_clear()
    with mock.patch.object(np.random, "default_rng", drawn):
        yield
    operation.references.cache_clear()
