"""Grade what one student has handed in: a result as plain data, which a report is made of."""

import functools
import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cnnlab.check import exercises
from cnnlab.check.kinds import Exercise
from cnnlab.course.grading import find, similar
from cnnlab.course.grading.find import Wanted
from cnnlab.course.grading.judge import Group, Judge, cleaned
from cnnlab.course.grading.notebook import Notebook
from cnnlab.course.grading.sandbox import Limits
from cnnlab.course.grading.secrecy import secret
from cnnlab.runtime.arguments import Entry


@dataclass(frozen=True)
class Plan:
    """What is graded, and how: the same for all students."""

    wanted: tuple[Wanted, ...]
    seed: int
    limits: Limits
    bare: Path  # a folder with a cnnlab without answers
    whole: Path
    speed: float | None = None  # times that of `vector`, which is asked of kernels
    # Of an exercise, by "05.trips": the part that it is worth as it is handed out.
    skeletons: dict[str, float] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tells a plan from another, as far as results go: they are kept by it."""
        of = repr((self.wanted, self.seed, self.limits, self.speed, code()))
        return hashlib.sha256(of.encode()).hexdigest()[:16]


@functools.cache
def code() -> str:
    """A digest of the grader and the checks: another version's results are not kept."""
    found = hashlib.sha256()
    for room in (Path(__file__).parent, Path(exercises.__file__).parents[1]):
        for file in sorted(room.rglob("*.py")):
            found.update(file.read_bytes())
    return found.hexdigest()


def exercise_of(wanted: Wanted) -> Exercise:
    """The exercise that is wanted; ValueError if there is none."""
    where = f"{exercises.__name__}.lesson_{wanted.lesson}:{wanted.name}"
    try:
        found = Entry(wanted.name, "", where).load()
    except (ImportError, AttributeError):
        found = None
    if not isinstance(found, Exercise):
        raise ValueError(f"exercise: expected one of lesson {wanted.lesson}, got {wanted.name!r}")
    return found


def grade(student: str, path: Path, plan: Plan) -> dict:
    """The result of one student: points, a verdict for each group of cases, code to compare."""
    handed_in, began = find.submitted(path), time.monotonic()
    rows, notes = [], [] if handed_in else [f"{path.name}: no notebook in it{packed(path)}"]
    for lesson in dict.fromkeys(each.lesson for each in plan.wanted):
        asked = [each for each in plan.wanted if each.lesson == lesson]
        notebook = find.of_lesson(lesson, find.exercises_of(lesson), handed_in)
        rows += [row(each, notebook, plan) for each in asked]
        rivals = [each.path.name for each in handed_in if find.claims(each, lesson)]
        if notebook is not None and len(rivals) > 1:
            notes.append(f"lesson {lesson}: of {', '.join(rivals)} {notebook.path.name} counts")
    problems = [*notes, *(text for notebook in handed_in for text in notebook.problems)]
    return {
        "student": student,
        "plan": plan.digest,
        "handed_in": digest(path),
        "points": round(sum(each["points"] for each in rows), 2),
        "most": sum(each["most"] for each in rows),
        "problems": [cleaned(text) for text in problems],
        "seconds": round(time.monotonic() - began, 1),
        "exercises": rows,
    }


def packed(path: Path) -> str:
    """What to say of an archive in a hand-in, or of one that is the hand-in."""
    archives = [file.name for file in find.files_of(path) if file.suffix in find.ARCHIVES]
    return f"; unpack {', '.join(archives)}" if archives else ""


def not_graded(student: str, problem: Exception, plan: Plan) -> dict:
    """The result of a student whom the grader could not grade: no points, and why."""
    text = cleaned(f"not graded: {problem}")
    rows = [row(asked, None, plan) | {"verdict": text, "groups": []} for asked in plan.wanted]
    most = sum(asked.points for asked in plan.wanted)
    about = {"student": student, "plan": "", "handed_in": "", "points": 0, "most": most}
    return {**about, "problems": [text], "seconds": 0, "exercises": rows}


def row(asked: Wanted, notebook: Notebook | None, plan: Plan) -> dict:
    """The result of one exercise."""
    answer = None
    if notebook is not None:
        answer = find.answer_to(asked, find.exercises_of(asked.lesson), notebook)
    if answer is None:
        groups, note, shape = [Group("answer", 0, f"no answer found: {asked.variable}")], "", ""
    else:
        with secret(plan.seed):
            judge = Judge(
                exercise_of(asked), answer, plan.bare, plan.whole, plan.limits, plan.speed
            )
            groups = judge.groups()
        note, shape = answer.note, "" if answer.empty else similar.normal(answer)
    part = sum(each.passed for each in groups) / len(groups) if groups[0].passed else 0
    before = plan.skeletons.get(f"{asked.lesson}.{asked.name}", 0)
    part = max(0, part - before) / (1 - before) if before < 1 else part
    wrong = next((each.text for each in groups if each.passed < 1), "")
    return {
        "lesson": asked.lesson, "name": asked.name, "variable": asked.variable,
        "points": round(asked.points * part, 2), "most": asked.points,
        "verdict": wrong or groups[-1].text, "note": note, "shape": shape,
        "groups": [asdict(each) for each in groups],
    }  # fmt: skip


def digest(path: Path) -> str:
    """What tells one hand-in from another: the bytes of its files."""
    found = hashlib.sha256()
    for file in find.files_of(path):
        if file.suffix in find.SUFFIXES and file.is_file():
            found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


def with_points(wanted: Sequence[Wanted], points: dict[str, float]) -> tuple[Wanted, ...]:
    """The exercises with points as asked for, by "05.trips", or by lesson "05" for each of it."""
    known = {f"{each.lesson}.{each.name}" for each in wanted} | {each.lesson for each in wanted}
    for name in points:
        if name not in known:
            raise ValueError(f"--points: expected an exercise such as 05.trips, got {name!r}")
    return tuple(
        replace(
            each,
            points=points.get(
                f"{each.lesson}.{each.name}", points.get(each.lesson, each.points)
            ),
        )
        for each in wanted
    )  # fmt: skip
