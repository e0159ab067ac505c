"""What an instructor chooses: lessons, a title, and when they are due."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cnnlab.course import commands, parts


@dataclass(frozen=True)
class Assignment:
    """Lessons that are handed out together; `due` is a date in ISO's form, or None."""

    lessons: tuple[Path, ...]
    title: str
    due: str | None

    @property
    def name(self) -> str:
        """The title as the name of a folder, such as "lessons-05-12"."""
        return re.sub(r"[^\w]+", "-", self.title).strip("-").lower()


def assignment(
    wanted: list[str], notebooks: Path, title: str | None = None, due: str | None = None
) -> Assignment:
    """The assignment of the lessons with these numbers, as "05". ValueError if there are none."""
    known = {parts.number(path.stem): path for path in commands.find_lessons([], notebooks)}
    for number in wanted or [""]:
        if number not in known:
            raise ValueError(f"LESSONS: expected numbers of {', '.join(known)}, got {number!r}")
    lessons = {number: known[number] for number in sorted(wanted)}
    found = Assignment(tuple(lessons.values()), title or f"Lessons {', '.join(lessons)}", due)
    if not found.name:
        raise ValueError(f"TITLE: expected letters or digits, got {title!r}")
    try:
        datetime.fromisoformat(due or "2000-01-01")
    except ValueError:
        raise ValueError(f"DUE: expected a date such as 2030-01-31, got {due!r}") from None
    return found
