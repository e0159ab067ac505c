"""The course as a whole: run every lesson, render the committed ones, check them.

    python -m cnnlab.course run [00 01 …]      every lesson here and now, pages in build/course
    python -m cnnlab.course render [00 …]      execute in place and canonicalise; README's table
    python -m cnnlab.course check [00 …]       prove the committed lessons canonical
    python -m cnnlab.course lowest             the lowest versions that pyproject.toml allows

Inside a lesson only `record` matters; what runs lessons is imported where it is used.
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from cnnlab.course.results import recorded, table_text

ROOT = Path(__file__).resolve().parents[2]
CELL_TIMEOUT = 600  # seconds


# --- running lessons ----------------------------------------------------------------------------


def find_lessons(wanted: list[str], folder: Path) -> list[Path]:
    """Return the notebooks in `folder`, in order; with `wanted`, those that start with one of it.

    Raises ValueError if a wanted lesson or any lesson at all is missing.
    """
    paths = sorted(folder.glob("*.ipynb"))
    if not paths:
        raise ValueError(f"no lessons in {folder}")
    for start in wanted:
        if not any(path.name.startswith(start) for path in paths):
            known = ", ".join(path.stem for path in paths)
            raise ValueError(f"no lesson {start!r}; there are {known}")
    return [path for path in paths if path.name.startswith(tuple(wanted) or "")]


def execute(nb: Any, path: Path, results: Path | None = None) -> str | None:
    """Execute a notebook top to bottom in its own kernel, in place, with a line of progress.

    Parameters
    ----------
    nb : the notebook, whose outputs and execution counts are replaced
    path : its file, whose folder the kernel works in
    results : the folder for `record`

    Returns None, or the error that stopped it: which cell, and the traceback. Ctrl-C ends the
    kernel and raises KeyboardInterrupt.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    live = sys.stdout.isatty()
    style = "  {desc:<24} {bar:30} cell {n_fmt} of {total_fmt}, {elapsed}"
    bar = tqdm(
        total=len(nb.cells), desc=path.stem, bar_format=style, leave=False, disable=not live,
        file=sys.stdout,
    )  # fmt: skip
    reached = 0

    def at_cell(cell: Any, cell_index: int) -> None:
        nonlocal reached
        reached = cell_index + 1
        bar.n = cell_index
        bar.refresh()

    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        nb, timeout=CELL_TIMEOUT, kernel_name="python3", record_timing=False, on_cell_start=at_cell,
        resources={"metadata": {"path": str(path.parent)}}, extra_arguments=["--log-level=ERROR"],
    )  # fmt: skip
    env = dict(os.environ) | ({"CNNLAB_RESULTS": str(results)} if results else {})
    stopped = False

    async def tick_until_done() -> None:
        lesson = asyncio.ensure_future(client.async_execute(env=env))

        def stop() -> None:
            nonlocal stopped
            stopped = lesson.cancel()

        await asyncio.sleep(0)  # the client puts up its own handler first
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
        while not lesson.done():
            await asyncio.wait({lesson}, timeout=0.5)
            bar.refresh()
        await lesson

    if not live:
        print(f"  {path.stem:<24} running", flush=True)
    start, error = time.perf_counter(), None
    try:
        asyncio.run(tick_until_done())
    except (CellControlSignal, DeadKernelError, asyncio.CancelledError) as problem:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(problem))  # without the colours of a traceback
        error = f"cell {reached}: {plain.strip()}"
    bar.close()
    if stopped:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - start
    print(f"  {path.stem:<24} {'failed' if error else 'done'} in {seconds:.0f} s", flush=True)
    return error


def plural(n: int) -> str:
    """Return "1 lesson" or "6 lessons"."""
    return f"{n} lesson{'s' if n != 1 else ''}"


def report(failures: dict[str, list[str]]) -> int:
    """Print what went wrong, lesson by lesson, to standard error and return the exit status."""
    for name, texts in failures.items():
        print(f"\n{name}:", *texts, sep="\n  ", file=sys.stderr)
    return 1 if failures else 0


# --- the commands -------------------------------------------------------------------------------


def run(wanted: list[str], notebooks: Path, build: Path) -> int:
    """Run the lessons, show their speedups, leave pages in `build`; return the exit status."""
    import nbformat

    from cnnlab.course import pages

    paths = find_lessons(wanted, notebooks)
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    print(f"Running {plural(len(paths))} on this machine")
    executed, failures = {}, {}
    for path in paths:
        executed[path.stem] = nb = nbformat.read(path, as_version=4)
        if error := execute(nb, path, build / "results" / path.stem):
            failures[path.stem] = [error]
        nbformat.write(nb, build / path.name)
    tables = recorded(build / "results")
    pages.write(executed, set(failures), tables, notebooks, build)
    for table in tables:
        print(f"\n{table_text(table)}")
    print(f"\nPages to browse: {build / 'index.html'}")
    return report(failures)


def render(wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Execute the lessons in place, stamped and canonical; a lesson with a problem stays as is."""
    import nbformat

    from cnnlab.course import lesson

    failures = {}
    for path in find_lessons(wanted, notebooks):
        try:
            nb = lesson.stamp(nbformat.read(path, as_version=4), path.name, address)
        except ValueError as problem:
            failures[path.stem] = [str(problem)]
            continue
        error = execute(nb, path)
        nb = lesson.canonical(nb)
        if found := [error] if error else list(lesson.problems(nb)):
            failures[path.stem] = found
        else:
            path.write_text(lesson.to_text(nb), encoding="utf-8")
    return report(failures)


def check(wanted: list[str], notebooks: Path, address: str | None) -> int:
    """Prove the lessons canonical without executing them; return the exit status."""
    import nbformat

    from cnnlab.course import lesson

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


def main(arguments: list[str] | None = None) -> int:
    """Run one command of the course and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m cnnlab.course", description=__doc__)
    parser.add_argument("command", choices=["run", "render", "check", "lowest"])
    parser.add_argument("lessons", nargs="*", help="beginnings of lesson names; all by default")
    chosen = parser.parse_args(arguments)
    notebooks = ROOT / "notebooks"
    try:
        if chosen.command == "run":
            return run(chosen.lessons, notebooks, ROOT / "build" / "course")

        from cnnlab.course import lesson, parts

        if chosen.command == "render":
            readme = ROOT / "README.md"
            readme.write_text(parts.with_table(readme.read_text("utf-8")), encoding="utf-8")
            return render(chosen.lessons, notebooks, lesson.repository())
        if chosen.command == "check":
            return check(chosen.lessons, notebooks, lesson.repository())
        print("\n".join(lesson.lowest()))
        return 0
    except ValueError as problem:
        parser.exit(2, f"{problem}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")


if __name__ == "__main__":
    sys.exit(main())
