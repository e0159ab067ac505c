"""The command line of the course: `python -m cnnlab.course COMMAND`."""

import argparse
import sys
from pathlib import Path

from cnnlab.runtime import failures, thread_pool

ROOT = Path(__file__).resolve().parents[2]
TABLES = "and write the tables in README.md and in the pages beside the lessons"
COMMANDS = {
    "run": "run lessons; pages in build/course",
    "render": f"execute lessons, store them in canonical form, {TABLES}",
    "stamp": f"take in edited prose, write titles, setup cells and answers anew, {TABLES}",
    "check": "check that the stored lessons and tables are as rendered",
    "assignment": "write exercises to hand in to build/assignment, a course of nbgrader",
    "copy": "copy to work/ the lessons that are not there yet",
    "zip": "write what students need to build/cnnlab.zip",
    "lowest": "print the lowest versions that pyproject.toml allows",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command of the course and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m cnnlab.course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name in ("run", "render", "stamp", "check", "assignment"):
            command.add_argument("lessons", nargs="*", help="their numbers (default: all)")
        if name == "assignment":
            command.add_argument("--title", default="", help="(default: the lessons by number)")
            command.add_argument("--due", default="", help="a date, such as 2030-01-31")
            command.add_argument("--seed", default="", help="of the fresh cases (default: chance)")
    try:
        failures.stop_by_exception()
        thread_pool.size()  # before Numba refuses a number of threads without its name
        return perform(**vars(parser.parse_args(arguments)))
    except (ValueError, RuntimeError) as problem:
        parser.exit(failures.status(problem), f"{problem}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")


def perform(command: str, lessons: list[str] = (), **options: str) -> int:
    """Run a command on lessons of this checkout, with its options; return its exit status."""
    from cnnlab.course import assignment, handout, parts

    notebooks, build = ROOT / "notebooks", ROOT / "build"
    if command == "run":
        from cnnlab.course import pages

        return pages.run(lessons, notebooks, build)
    if command == "assignment":
        assignment.write(build / "assignment", notebooks, " ".join(lessons), **options)
    elif command == "copy":
        handout.make_copy(notebooks, ROOT / "work")
    elif command == "zip":
        handout.make_zip(ROOT, build / "cnnlab.zip")
    elif command == "lowest":
        print("\n".join(parts.lowest()))
    else:
        from cnnlab.course import render, tables

        for path in parts.find_lessons(lessons, notebooks):
            if path.stem not in parts.lessons():
                raise ValueError(f"{path.stem}: has no entry in lessons.toml")
        status = render.for_each(command, lessons, notebooks, parts.repository())
        if command != "check":
            tables.write(ROOT)
        elif old := [file.name for file in tables.outdated(ROOT)]:
            raise ValueError(f"tables: outdated in {', '.join(old)} → make stamp")
        return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
