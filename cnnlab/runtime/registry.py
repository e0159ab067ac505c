"""Lists of what the course offers: a name, a line about it, and the place of its code."""

import importlib
from typing import NamedTuple

from cnnlab.runtime.arguments import one_of


class Entry(NamedTuple):
    """One entry of a list. Its code is imported by `load`, not before.

    `where` is "module:name", such as "cnnlab.training.method:Method".
    """

    name: str
    summary: str
    where: str

    def load(self):
        """The class or function that the entry names."""
        module, name = self.where.split(":")
        return getattr(importlib.import_module(module), name)


def listed(*entries: Entry) -> dict[str, Entry]:
    """The entries by name."""
    return {entry.name: entry for entry in entries}


def find(what: str, name: str, entries: dict[str, Entry]):
    """The class or function with that name, loaded; ValueError if `name` is not listed."""
    one_of(what, name, entries)
    return entries[name].load()
