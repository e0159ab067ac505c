"""`python -m cnnlab grade`: its options. What it does is imported when it is asked for."""

import argparse
from pathlib import Path

from cnnlab.runtime.arguments import parse_positive, parse_whole

SECONDS, MEGABYTES = 120, 4096  # that an answer may take


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `grade`."""
    option = command.add_argument
    command.usage = "%(prog)s SUBMISSIONS [options]"
    what = "a folder with a folder or a notebook for each student, or one student's notebook"
    option("submissions", type=Path, metavar="SUBMISSIONS", help=what)
    what = "of an assignment: its exercises, points and seed (default: the lessons found)"
    option("--rubric", type=Path, metavar="FILE", help=what)
    what = "the points of an exercise, as 05.trips=2, or of each of a lesson's, as 05=1"
    option("--points", nargs="+", default=[], metavar="NAME=N", help=what)
    what = "where results, pages and the secret seed go; what lies there is not graded again"
    option("--out", type=Path, default=Path("grades"), metavar="FOLDER", help=what)
    option("--csv", action="store_true", help="print a table that a spreadsheet reads")
    what = f"seconds that an answer may take (default: {SECONDS})"
    option("--seconds", type=parse_positive, default=SECONDS, metavar="N", help=what)
    what = f"megabytes of memory that it may take (default: {MEGABYTES})"
    option("--memory", type=parse_whole, default=MEGABYTES, metavar="N", help=what)
    what = "students that are graded at the same time (default: 2)"
    option("--at-once", type=parse_whole, default=2, metavar="N", help=what)
    what = "also ask kernels for R times the speed of `vector`, in the same run (default: do not)"
    option("--speed", type=parse_positive, metavar="R", help=what)
    option("--json", action="store_true", help="print a line of JSON at the end")
    option("--debug", action="store_true", help="show the traceback of a failure")


def grade(chosen) -> int:
    """Grade a class, print its table and write its pages; return the exit status."""
    from cnnlab.course.grading import command

    return command.grade(chosen)
