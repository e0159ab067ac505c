"""Make an assignment: `python -m cnnlab.course.assignment 05 12 31 --title "Week 3"`."""

import argparse
import sys
from pathlib import Path

from cnnlab.runtime import failures

ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str] | None = None) -> int:
    """Write the folders of an assignment to build/assignment; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cnnlab.course.assignment", description=__doc__)
    parser.add_argument("lessons", nargs="*", help="numbers of lessons, such as 05 12 31")
    parser.add_argument("--title", help="what it is called; lessons by their numbers, if not given")
    parser.add_argument("--due", help="a date, such as 2030-01-31")
    parser.add_argument("--seed", type=int, help="the secret one; drawn by chance if not given")
    given = parser.parse_args(arguments)
    try:
        failures.stop_by_exception()
        from cnnlab.course.assignment import chosen, folders

        made = chosen.assignment(given.lessons, ROOT / "notebooks", given.title, given.due)
        folder = folders.write(made, ROOT, ROOT / "build" / "assignment", given.seed)
    except (ValueError, RuntimeError) as problem:
        parser.exit(failures.status(problem), f"{problem}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")
    print(f"{folder / 'students'}: to hand out\n{folder / 'instructor'}: for you alone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
