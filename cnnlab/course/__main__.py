"""The command line of the course.

    python -m cnnlab.course run [00 01 …]      run lessons; pages in build/course
    python -m cnnlab.course render [00 …]      execute lessons, store them in canonical form
    python -m cnnlab.course stamp [00 …]       write titles, setup cells and answers anew, no more
    python -m cnnlab.course check [00 …]       check that the stored lessons are as rendered
    python -m cnnlab.course copy               copy to work/ the lessons that are not there yet
    python -m cnnlab.course zip                what students need, in build/cnnlab.zip
    python -m cnnlab.course lowest             the lowest versions that pyproject.toml allows

`render` and `stamp` also write the tables in README.md and in the pages beside the lessons.
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
    from cnnlab.course import handout, parts

    notebooks, build = ROOT / "notebooks", ROOT / "build"
    if command == "lowest":
        print("\n".join(parts.lowest()))
        return 0
    if command == "zip":
        return handout.make_zip(ROOT, build / "cnnlab.zip")
    if command == "copy":
        return handout.make_copy(notebooks, ROOT / "work")
    if command == "run":
        from cnnlab.course import pages

        return pages.run(lessons, notebooks, build)
    from cnnlab.course import render, tables

    work = {"render": render.render, "stamp": render.restamp, "check": render.verify}[command]
    status = work(lessons, notebooks, parts.repository())
    if command != "check":
        tables.write(ROOT)
    elif old := [file.name for file in tables.outdated(ROOT)]:
        raise ValueError(f"tables: outdated in {', '.join(old)} → make stamp")
    return status


if __name__ == "__main__":
    sys.exit(main())
