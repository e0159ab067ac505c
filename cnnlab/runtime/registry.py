"""Lists of what the course offers: names, each with a line about it, and where its code lies."""

import importlib
from typing import NamedTuple


class Entry(NamedTuple):
    """One entry of a list. Its code is imported when it is first asked for.

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
    """Load the entry of that name; ValueError that names the known ones for any other."""
    if name not in entries:
        raise ValueError(f"{what}: expected one of {', '.join(entries)}, got {name!r}")
    return entries[name].load()
