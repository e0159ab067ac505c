"""`python -m cnnlab grade`: what is asked for, the class that is graded, and what is told of it."""

import contextlib
import csv
import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from cnnlab.course.grading import report
from cnnlab.course.grading.classroom import Classroom, students_of
from cnnlab.course.grading.find import Wanted, claims, exercises_of, submitted
from cnnlab.course.grading.grade import Plan, exercise_of, not_graded, with_points
from cnnlab.course.grading.notebook import first_line
from cnnlab.course.grading.sandbox import Limits, packages, walls
from cnnlab.course.parts import number, parts
from cnnlab.cuda.emulator.compiler import compiler
from cnnlab.runtime.arguments import table
from cnnlab.runtime.files import replacing


def grade(chosen) -> int:
    """Grade a class, print its table and write its pages; return the exit status."""
    students = students_of(chosen.submissions)
    wanted, title, seed = asked_for(chosen, students)
    wanted = with_points(wanted, dict(map(parse_points, chosen.points)))
    if any(exercise_of(each).kind == "cuda_c" for each in wanted):
        compiler()  # without one, all would fail: say so now
    chosen.out.mkdir(parents=True, exist_ok=True)
    limits = Limits(chosen.seconds, int(chosen.seconds) + 1, chosen.memory << 20)
    if missing := walls():
        print(f"cnnlab: grade: {missing}", file=sys.stderr)
    with packages() as (bare, whole):
        plan = Plan(wanted, kept_seed(chosen.out, seed), limits, bare, whole, chosen.speed)
        room = Classroom(plan, chosen.out, chosen.at_once)
        results, failed = room.with_skeletons().grade(students)
    results += [not_graded(student, problem, plan) for student, problem in failed.items()]
    report.write(results, title, chosen.out)
    told(results, chosen)
    for student, problem in failed.items():
        print(f"cnnlab: grade: {student}: {problem}", file=sys.stderr)
    return 1 if failed else 0


def asked_for(chosen, students: dict[str, Path]) -> tuple[Sequence[Wanted], str, int | None]:
    """The exercises, the title and the seed: those of the rubric, or of the lessons found."""
    if chosen.rubric:
        return read_rubric(chosen.rubric)
    known = [number(lesson.name) for part in parts() for lesson in part.lessons]
    notebooks = [each for path in students.values() for each in submitted(path)]
    found = [n for n in known if any(claims(each, n) for each in notebooks)]
    if not found:
        raise ValueError(f"SUBMISSIONS: expected answers to lessons, got {chosen.submissions}")
    return [each for n in found for each in exercises_of(n)], f"Lessons {', '.join(found)}", None


def read_rubric(file: Path) -> tuple[Sequence[Wanted], str, int | None]:
    """The exercises, the title and the seed of a rubric; ValueError for what is none."""
    try:
        rubric = json.loads(file.read_text(encoding="utf-8"))
        wanted = [
            Wanted(str(e["lesson"]), str(e["name"]), str(e["variable"]), float(e["points"]))
            for e in rubric["exercises"]
        ]
        if not wanted or not all(0 <= each.points < 1e6 for each in wanted):
            raise ValueError("none, or points below 0")
        seed = rubric.get("seed")
        return wanted, str(rubric.get("title") or "Grades"), None if seed is None else int(seed)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        text = f"--rubric: expected exercises in {file}, got {first_line(problem)}"
        raise ValueError(text) from None


def parse_points(text: str) -> tuple[str, float]:
    """The exercise and the points of an option such as 05.trips=2."""
    name, _, points = text.partition("=")
    with contextlib.suppress(ValueError):
        if 0 <= float(points) < 1e6:
            return name, float(points)
    raise ValueError(f"--points: expected an exercise and its points, 05.trips=2, got {text!r}")


def kept_seed(out: Path, given: int | None) -> int:
    """The secret seed: the rubric's, or that of the last time, or a new one, which is kept."""
    file = out / "seed"
    if given is None and file.is_file():
        return int(file.read_text())
    seed = secrets.randbits(64) if given is None else given
    with replacing(file) as opened:
        os.chmod(opened.name, 0o600)
        opened.write(str(seed).encode())
    return seed


def told(results: Sequence[dict], chosen) -> None:
    """Print the table of the class; as CSV or JSON, if asked."""
    exercises = (
        [f"{row['lesson']}.{row['name']}" for row in results[0]["exercises"]] if results else []
    )
    rows = [["student", "points", "of", *exercises]]
    for each in results:
        points = [f"{row['points']:g}" for row in each["exercises"]]
        rows.append([each["student"], f"{each['points']:g}", f"{each['most']:g}", *points])
    if chosen.csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    elif not chosen.json:
        print(table([row[:3] for row in rows], "<>>"))
        print(f"\nPages to browse: {chosen.out / 'index.html'}")
    if chosen.json:
        print(json.dumps(list(results)))
