"""The command line of the course.

    python -m cnnlab.course run [00 01 …]      run lessons; pages in build/course
    python -m cnnlab.course render [00 …]      execute lessons, store them in canonical form
    python -m cnnlab.course check [00 …]       check that the stored lessons are as rendered
    python -m cnnlab.course lowest             the lowest versions that pyproject.toml allows

`render` also writes the table of lessons in README.md.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run one command of the course and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cnnlab.course",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["run", "render", "check", "lowest"])
    parser.add_argument(
        "lessons", nargs="*", help="beginnings of the lessons' names (default: all)"
    )
    chosen = parser.parse_args(arguments)
    try:
        return perform(chosen.command, chosen.lessons)
    except ValueError as problem:
        parser.exit(2, f"{problem}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")


def perform(command: str, lessons: list[str]) -> int:
    """Run a command on lessons of this checkout; return its exit status."""
    from cnnlab.course import pyproject

    if command == "lowest":
        print("\n".join(pyproject.lowest()))
        return 0
    from cnnlab.course import commands, parts

    notebooks = ROOT / "notebooks"
    if command == "run":
        return commands.run(lessons, notebooks, ROOT / "build" / "course")
    if command == "check":
        return commands.check(lessons, notebooks, pyproject.repository())
    readme = ROOT / "README.md"
    readme.write_text(parts.with_table(readme.read_text("utf-8")), encoding="utf-8")
    return commands.render(lessons, notebooks, pyproject.repository())


if __name__ == "__main__":
    sys.exit(main())
