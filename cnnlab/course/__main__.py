"""The command line of the course.

    python -m cnnlab.course run [00 01 …]      run lessons; pages in build/course
    python -m cnnlab.course render [00 …]      execute lessons, store them in canonical form
    python -m cnnlab.course stamp [00 …]       write titles, setup cells and answers anew, no more
    python -m cnnlab.course check [00 …]       check that the stored lessons are as rendered
    python -m cnnlab.course copy               copy to work/ the lessons that are not there yet
    python -m cnnlab.course zip                what students need, in build/cnnlab.zip
    python -m cnnlab.course lowest             the lowest versions that pyproject.toml allows

`render` also writes the table of lessons in README.md.
"""

import argparse
import sys
from pathlib import Path

from cnnlab.runtime import failures

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = "run", "render", "stamp", "check", "copy", "zip", "lowest"


def main(arguments: list[str] | None = None) -> int:
    """Run one command of the course and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cnnlab.course",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument(
        "lessons", nargs="*", help="beginnings of the lessons' names (default: all)"
    )
    chosen = parser.parse_args(arguments)
    try:
        failures.stop_by_exception()
        return perform(chosen.command, chosen.lessons)
    except (ValueError, RuntimeError) as problem:
        parser.exit(failures.status(problem), f"{problem}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")


def perform(command: str, lessons: list[str]) -> int:
    """Run a command on lessons of this checkout; return its exit status."""
    from cnnlab.course import pyproject

    if command == "lowest":
        print("\n".join(pyproject.lowest()))
        return 0
    if command in ("copy", "zip"):
        return hand_out(command)
    from cnnlab.course import commands, parts

    notebooks = ROOT / "notebooks"
    if command == "stamp":
        return commands.stamp(lessons, notebooks, pyproject.repository())
    if command == "run":
        return commands.run(lessons, notebooks, ROOT / "build" / "course")
    if command == "check":
        return commands.check(lessons, notebooks, pyproject.repository())
    readme = ROOT / "README.md"
    readme.write_text(parts.with_table(readme.read_text("utf-8")), encoding="utf-8")
    return commands.render(lessons, notebooks, pyproject.repository())


def hand_out(command: str) -> int:
    """Copy the lessons to work/, or write the zip for students, and say so; the exit status."""
    from cnnlab.course import commands, handout

    if command == "copy":
        copied, kept = handout.copy_lessons(ROOT / "notebooks", ROOT / "work")
        said = [f"{commands.plural(copied)} copied"] if copied else []
        said += [f"{kept} kept as you left them" if copied else "the lessons as you left them"]
        print(f"work/: {', '.join(said if kept else said[:1])}")
        return 0
    file = ROOT / "build" / "cnnlab.zip"
    size = handout.write_zip(ROOT, file)
    print(f"{file}: {size / 1e6:.1f} MB, for students; its READ-ME says what to do with it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
