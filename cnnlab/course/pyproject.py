"""What pyproject.toml says: the course's version and public address, and the lowest versions."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version(path: Path = PYPROJECT) -> str:
    """The version of the course."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]["version"]


def repository(path: Path = PYPROJECT) -> str | None:
    """The public address of the course; None if pyproject.toml has none.

    Raises ValueError if it is not https://host/path.
    """
    urls = tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("urls", {})
    address = urls.get("Repository")
    if address is None:
        return None
    if not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+/?", address):
        raise ValueError(f"[project.urls] Repository: expected https://host/path, got {address!r}")
    return address.rstrip("/").removesuffix(".git")


def lowest(path: Path = PYPROJECT) -> list[str]:
    """`name==version` for every lower bound in pyproject.toml."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for group in groups for text in group]
    return [
        f"{requirement.name}=={bound.version}"
        for requirement in requirements
        for bound in requirement.specifier
        if bound.operator == ">="
    ]
