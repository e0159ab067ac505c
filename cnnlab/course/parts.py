"""The lessons that lessons.toml lists; the address and lowest versions in pyproject.toml."""

import functools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PYPROJECT = ROOT / "pyproject.toml"


class Lesson(NamedTuple):
    """One lesson: its notebook without the suffix, its title, subject in one line, and part."""

    name: str
    title: str
    subject: str
    part: str

    @property
    def heading(self) -> str:
        """The first line of the notebook."""
        return f"# {number(self.name)} · {self.title}"


def number(name: str) -> str:
    """The number of the lesson of that name, all before the underscore: "05" or "00b"."""
    return name.partition("_")[0]


@functools.cache
def lessons() -> dict[str, Lesson]:
    """The lessons by name, in order. The names of a part begin with the same digit."""
    listed = tomllib.loads((NOTEBOOKS / "lessons.toml").read_text(encoding="utf-8"))
    return {
        name: Lesson(name, *about, part)
        for part, names in listed.items()
        for name, about in names.items()
    }


def part(name: str) -> str:
    """The title of a lesson's part, by its first digit; "More" if there is none."""
    return next((each.part for each in lessons().values() if each.name[0] == name[0]), "More")


def find_lessons(wanted: list[str], folder: Path) -> list[Path]:
    """The notebooks of a folder whose names begin with one of `wanted`, in order; all by default.

    Raises ValueError if there are no notebooks, or none for one of `wanted`.
    """
    paths = sorted(folder.glob("*.ipynb"))
    if not paths:
        raise ValueError(f"lessons: expected notebooks in {folder}, got none")
    for start in wanted:
        if not any(path.name.startswith(start) for path in paths):
            known = ", ".join(path.stem for path in paths)
            raise ValueError(f"lessons: expected the beginning of one of {known}, got {start!r}")
    return [path for path in paths if path.name.startswith(tuple(wanted) or "")]


def project(path: Path = PYPROJECT) -> dict:
    """The table [project] of a pyproject.toml."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def repository(path: Path = PYPROJECT) -> str | None:
    """The public address of the course, https://host/path; None if pyproject.toml has none.

    Raises ValueError if it is anything else.
    """
    address = project(path).get("urls", {}).get("Repository")
    if address and not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+/?", address):
        raise ValueError(f"[project.urls] Repository: expected https://host/path, got {address!r}")
    return address and address.rstrip("/").removesuffix(".git")


def lowest(path: Path = PYPROJECT) -> list[str]:
    """`name==version` for every lower bound in pyproject.toml, and where it holds."""
    table = project(path)
    groups = [table["dependencies"], *table["optional-dependencies"].values()]
    needs = [Requirement(text) for group in groups for text in group]
    bounds = [(need, bound) for need in needs for bound in need.specifier if bound.operator == ">="]
    return [f"{n.name}=={b.version}" + (f"; {n.marker}" if n.marker else "") for n, b in bounds]
