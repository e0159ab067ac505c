"""Grade a class: two students at a time, each result kept, so that it can go on later."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import quote

from tqdm import tqdm

from cnnlab.course.grading.find import ARCHIVES, SUFFIXES, lesson_file
from cnnlab.course.grading.grade import Plan, digest, grade
from cnnlab.course.grading.sandbox import SETTINGS
from cnnlab.runtime.failures import environment, one_line
from cnnlab.runtime.files import replacing

TRIES = 2  # of a student at whom a process of the grader has ended


def students_of(submissions: Path) -> dict[str, Path]:
    """The students of a folder, by name: its folders and notebooks; or the one of a notebook."""
    if submissions.is_file():
        return {submissions.stem: submissions}
    if not submissions.is_dir():
        raise ValueError(f"SUBMISSIONS: expected a folder or a notebook, got {submissions}")
    paths = [p for p in sorted(submissions.iterdir()) if not p.name.startswith((".", "_"))]
    found = {p.name: p for p in paths if p.is_dir()}
    known = SUFFIXES + ARCHIVES
    found |= {p.stem: p for p in paths if p.suffix in known and p.stem not in found}
    if not found:
        raise ValueError(f"SUBMISSIONS: expected folders or notebooks in {submissions}, got none")
    return found


def file_name(student: str) -> str:
    """A name for files from that of a student, which may hold anything."""
    return quote(student, safe=" ")


@dataclass(frozen=True)
class Classroom:
    """The results of a class, kept in a folder."""

    plan: Plan
    out: Path
    at_once: int

    def with_skeletons(self) -> "Classroom":
        """The same, with what the lessons are worth as they are handed out: that earns nothing."""
        (self.out / "skeletons").mkdir(exist_ok=True)
        room = replace(self, out=self.out / "skeletons")
        lessons = {each.lesson for each in self.plan.wanted}
        results, failed = room.grade({n: p for n in lessons if (p := lesson_file(n))})
        for lesson, problem in failed.items():
            raise RuntimeError(f"lesson {lesson} as it is handed out: {problem}")
        parts = {
            f"{row['lesson']}.{row['name']}": row["points"] / row["most"] if row["most"] else 0.0
            for result in results
            for row in result["exercises"]
            if row["lesson"] == result["student"]
        }
        return replace(self, plan=replace(self.plan, skeletons=parts))

    def grade(self, students: dict[str, Path]) -> tuple[list[dict], dict[str, str]]:
        """The results, by name; and why there is none, for whom the grader itself has failed.

        What was graded before is not graded again, unless the hand-in or the plan has changed.
        """
        (self.out / "results").mkdir(exist_ok=True)
        kept = {name: self.kept(name, path) for name, path in students.items()}
        results, failed = {name: one for name, one in kept.items() if one}, {}
        todo = {name: path for name, path in students.items() if name not in results}
        bar = tqdm(total=len(students), initial=len(results), unit="student", file=sys.stderr)
        with bar:
            for _ in range(TRIES):
                for name, one in self.graded(todo):
                    if isinstance(one, dict):
                        results[name] = one
                        failed.pop(name, None)
                        bar.update()
                    else:
                        failed[name] = one_line(one)
                todo = {name: path for name, path in todo.items() if name not in results}
        return [results[name] for name in students if name in results], failed

    def graded(self, todo: dict[str, Path]) -> Iterator[tuple[str, dict | Exception]]:
        """Each student with the result, or what went wrong, as they are done."""
        if not todo:
            return
        workers = min(self.at_once, len(todo))
        spawn = get_context("spawn")
        # The processes have the settings before they import Numba; this one does not keep them.
        with environment(SETTINGS), ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            asked = {pool.submit(grade, n, path, self.plan): n for n, path in todo.items()}
            try:
                for done in as_completed(asked):
                    name, problem = asked[done], done.exception()
                    if problem is None:
                        self.keep(name, done.result())
                    yield name, problem or done.result()
            except BrokenProcessPool as problem:
                yield from ((name, problem) for name in todo)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def path(self, student: str) -> Path:
        """Where a result is kept."""
        return self.out / "results" / f"{file_name(student)}.json"

    def keep(self, student: str, result: dict) -> None:
        """Write a result, whole or not at all."""
        with replacing(self.path(student)) as file:
            file.write(json.dumps(result).encode())

    def kept(self, student: str, path: Path) -> dict | None:
        """The result of this hand-in by this plan, if there is one."""
        try:
            result = json.loads(self.path(student).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        same = result.get("plan") == self.plan.digest and result.get("handed_in") == digest(path)
        return result if same else None
