"""The commands for lessons: run, render, stamp, check."""

import shutil
import sys
from pathlib import Path

import nbformat

from cnnlab.course import durations, images, lesson, pages
from cnnlab.course.execute import execute
from cnnlab.course.results import recorded, table_text
from cnnlab.runtime.files import replacing


def run(wanted: list[str], notebooks: Path, build: Path) -> int:
    """Run the lessons, print their speedups, write pages to `build`; return the exit status."""
    paths = find_lessons(wanted, notebooks)
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    print(f"Running {plural(len(paths))} on this machine")
    executed, failures = {}, {}
    for path in paths:
        executed[path.stem] = nb = nbformat.read(path, as_version=4)
        if error := execute(nb, path, build / "results" / path.stem, sharp=True):
            failures[path.stem] = [error]
        nbformat.write(nb, build / path.name)
    tables = recorded(build / "results")
    pages.write(executed, set(failures), tables, notebooks, build)
    for table in tables:
        print(f"\n{table_text(table)}")
    print(f"\nPages to browse: {build / 'index.html'}")
    return report(failures)


def render(wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Execute the lessons and store them, stamped and canonical; return the exit status.

    A lesson with a problem stays as it was.
    """
    failures = {}
    for path in find_lessons(wanted, notebooks):
        try:
            nb = lesson.stamp(nbformat.read(path, as_version=4), path.name, address)
        except ValueError as problem:
            failures[path.stem] = [str(problem)]
            continue
        error = execute(nb, path, strict=True)
        durations.tell(nb)
        images.lighten(nb)
        nb = lesson.canonical(nb)
        if found := [error] if error else [*lesson.problems(nb), *lesson.undescribed(nb)]:
            failures[path.stem] = found
        else:
            with replacing(path) as file:
                file.write(lesson.to_text(nb).encode())
    return report(failures)


def stamp(wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Write titles, badges, setup cells and answers anew, without running; return the status.

    All else stays as it was rendered. A lesson that was edited since, or that shows a kernel which
    has changed, is named and left alone.
    """
    failures = {}
    for path in find_lessons(wanted, notebooks):
        text = path.read_text(encoding="utf-8")
        nb = nbformat.reads(text, as_version=4)
        try:
            stamped = lesson.stamp(nb, path.name, address)
        except ValueError as problem:
            failures[path.stem] = [str(problem)]
            continue
        kernels = [cell.source for cell in nb.cells if lesson.shows_kernel(cell)]
        if kernels != [cell.source for cell in stamped.cells if lesson.shows_kernel(cell)] or (
            lesson.to_text(lesson.canonical(nb)) != text
        ):
            failures[path.stem] = [f"has to be run → make render LESSON={path.stem}"]
            continue
        with replacing(path) as file:
            file.write(lesson.to_text(lesson.canonical(stamped)).encode())
    return report(failures)


def check(wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Check that the lessons are stored as rendered, without executing them; return the status."""
    failures, paths = {}, find_lessons(wanted, notebooks)
    for path in paths:
        text = path.read_text(encoding="utf-8")
        nb = nbformat.reads(text, as_version=4)
        found = list(lesson.problems(nb))
        if lesson.to_text(lesson.canonical(nb)) != text:
            found.append("is not in canonical form, or was edited after rendering")
        try:
            if lesson.stamp(nb, path.name, address) != nb:
                found.append("has an outdated title, setup or kernel cell")
        except ValueError as problem:
            found.append(str(problem))
        if found:
            failures[path.stem] = [*found, f"→ make render LESSON={path.stem}"]
    if not failures:
        print(f"{plural(len(paths))} in canonical form")
    return report(failures)


def find_lessons(wanted: list[str], folder: Path) -> list[Path]:
    """The notebooks of a folder whose names begin with one of `wanted`, in order; all by default.

    Raises ValueError if there are no notebooks, or none for one of `wanted`.
    """
    paths = sorted(folder.glob("*.ipynb"))
    if not paths:
        raise ValueError(f"lessons: expected notebooks in {folder}, got none")
    for start in wanted:
        if not any(path.name.startswith(start) for path in paths):
            known = ", ".join(path.stem for path in paths)
            raise ValueError(f"lessons: expected the beginning of one of {known}, got {start!r}")
    return [path for path in paths if path.name.startswith(tuple(wanted) or "")]


def plural(n: int) -> str:
    """A number of lessons, such as "1 lesson" or "6 lessons"."""
    return f"{n} lesson{'s' if n != 1 else ''}"


def report(failures: dict[str, list[str]]) -> int:
    """Print the problems of each lesson to standard error; return the exit status."""
    for name, texts in failures.items():
        print(f"\n{name}:", *texts, sep="\n  ", file=sys.stderr)
    return 1 if failures else 0
