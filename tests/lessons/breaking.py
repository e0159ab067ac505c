"""Break what the cells of a lesson define, and see that a later cell says so.

Cells that hold matter, such as a kernel, carry the tag `matter`. For each mutant of one, only the
cells run that its definition needs, then the next cells that use it, until one raises. `python -m
tests.lessons.breaking 05 23` breaks these lessons in every way, and prints what nobody notices.
"""

import argparse
import faulthandler
import hashlib
import importlib
import io
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

from cnnlab.course import parts
from tests.lessons.equivalent import EQUIVALENT
from tests.lessons.mutants import Mutant, mutants
from tests.lessons.needs import Cell, cell, needed

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PROOFS = 3  # of the cells that use what a cell defines and assert, the first three may notice
WARM = ("numba", "cnnlab.check", "cnnlab.kernels", "cnnlab.plots.charts", "cnnlab.cuda")  # by most


class Unproved(Exception):
    """A lesson that cannot be broken: its cells fail as they are, or use nothing of one."""


def read(path: Path) -> list[Cell]:
    """The code cells of a lesson."""
    transform = TransformerManager().transform_cell
    nb = nbformat.read(path, as_version=4)
    codes = (c for c in nb.cells if c.cell_type == "code")
    return [cell(c.source, set(c.metadata.get("tags", [])), transform) for c in codes]


def defined(lesson: str, also: str = "", /, **names) -> dict:
    """What a lesson's cells with matter, and those that hold `also`, define, beside the `names`."""
    for each in read(next(NOTEBOOKS.glob(f"{lesson}_*.ipynb"))):
        if "matter" in each.tags or (also and also in each.source):
            exec(each.source, names)
    return names


def matter(cells: list[Cell]) -> list[int]:
    """The numbers of the cells that hold matter."""
    return [k for k, each in enumerate(cells) if "matter" in each.tags]


def unused(cells: list[Cell]) -> list[str]:
    """The names that cells with matter define, and that no later cell uses."""
    return [
        name
        for k in matter(cells)
        for name in sorted(cells[k].binds)
        if not any(name in later.uses for later in cells[k + 1 :])
        and len(re.findall(rf"\b{name}\b", cells[k].source)) < 2  # nor does the cell itself
    ]


def proofs(cells: list[Cell], k: int) -> list[int]:
    """The first cells after cell k that use what it defines, or what is made of that, and assert.

    A cell with matter proves nothing. One that starts ranks, which takes long, counts only where no
    other asserts; where none does, the first that use it count.
    """
    names, users = set(cells[k].binds), []
    for j in range(k + 1, len(cells)):
        if cells[j].uses & names:
            names |= cells[j].binds
            if "matter" not in cells[j].tags:
                users.append(j)
    sure = [j for j in users if re.search(r"\bassert|\bprove|_equal\(", cells[j].source)]
    quick = [j for j in sure if not re.search(r"\bcluster\(|real_ranks", cells[j].source)]
    return (quick or sure or users)[:PROOFS]


def broken(
    path: Path, *, one: bool = False, jobs: int = 1, patience: int = 120
) -> Iterator[tuple[Mutant, str]]:
    """Yield the mutants of a lesson, each with how it was noticed, or "" if it was not.

    Parameters
    ----------
    path : the lesson
    one : whether a single mutant runs, chosen by a digest of the cells that hold matter, and none
        that is listed as changing nothing; later proofs run only if the first does not notice it,
        and the unbroken cells only if it is noticed by something else than a failed assertion
    jobs : how many mutants run at a time
    patience : seconds after which a mutant never ends, and that is noticed

    This process runs the cells that are needed up to the last definition; each mutant runs in a
    fork of it. Raises Unproved where the cells fail as they are.
    """
    cells = read(path)
    plan = {k: mutants(cells[k].source) for k in matter(cells)}
    if one:
        plan = chosen(path.stem, cells, plan)
    for k in plan:
        if not proofs(cells, k):
            raise Unproved(f"{path.stem}: no later cell uses {', '.join(sorted(cells[k].binds))}")
    before = set().union(*(set(needed(cells, [k, *proofs(cells, k)])) for k in plan))
    shell = fresh_shell()
    for k in range(max(plan, default=-1) + 1):
        if k in plan:
            for n in (1, PROOFS) if one else (PROOFS,):
                rest = [j for j in needed(cells, proofs(cells, k)[:n]) if j > k]
                said = run_all(shell, plan[k], cells, rest, jobs, patience)
                if one and said[0].startswith(("AssertionError", "Wrong")):
                    break  # that the proof passes as it is, the lesson's own run shows
                unbroken = Mutant("", "", "", cells[k].source)
                if noticed := run_all(shell, [unbroken], cells, rest, 1, patience)[0]:
                    raise Unproved(f"{path.stem}, as it is: {noticed}")
                if all(said):
                    break
            yield from zip(plan[k], said, strict=True)
        if k in before and (problem := run(shell, cells[k].source)):
            raise Unproved(f"{path.stem}, as it is: {problem}")


def chosen(
    lesson: str, cells: list[Cell], plan: dict[int, list[Mutant]]
) -> dict[int, list[Mutant]]:
    """One mutant of the eighth of a plan that runs least code; the same as long as it stays."""

    def length(k: int) -> int:
        return sum(len(cells[j].source) for j in needed(cells, [k, *proofs(cells, k)[:1]]))

    quick = sorted(plan, key=length)[: (len(plan) + 7) // 8]
    every = [(k, m) for k in sorted(quick) for m in plan[k]]
    every = [(k, m) for k, m in every if (lesson, *m.key) not in EQUIVALENT]
    text = "\n".join(cells[k].source for k in plan)
    k, mutant = every[int(hashlib.sha256(text.encode()).hexdigest(), 16) % len(every)]
    return {k: [mutant]}


def fresh_shell():
    """An IPython shell that shows nothing, in the folder of the lessons."""
    from IPython.core.interactiveshell import InteractiveShell

    importlib.import_module("matplotlib.pyplot")  # once, not in every fork
    os.chdir(NOTEBOOKS)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.display_formatter.active_types = ["text/plain"]
    return shell


def run(shell, source: str) -> str:
    """Run a cell; the error that it raised in one line, or "" if it did not."""
    import matplotlib.pyplot as plt

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        result = shell.run_cell(source)
        plt.close("all")
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def run_all(
    shell, of_cell: list[Mutant], cells: list[Cell], rest: list[int], jobs: int, patience: int
) -> list[str]:
    """How each mutant was noticed, each in a fork that goes on with the cells of `rest`."""
    said, running, left = [], [], list(of_cell)
    try:
        while left or running:
            while left and len(running) < jobs:
                running.append(fork(shell, left.pop(0), cells, rest))
            said.append(result(*running[0], patience))
            running.pop(0)
    finally:
        for pid, *_ in running:
            os.killpg(pid, signal.SIGKILL)
    return said


def fork(shell, mutant: Mutant, cells: list[Cell], rest: list[int]) -> tuple[int, int, float]:
    """Start a mutant in a fork: the process, the pipe it will answer by, and when it began."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        return pid, reading, time.monotonic()
    said = ""
    try:
        os.setpgid(0, 0)
        faulthandler.disable()  # a crash is told by its signal
        sources = [mutant.source, *(cells[j].source for j in rest)]
        said = next(filter(None, (run(shell, source) for source in sources)), "")
    except BaseException as error:  # a fork never returns to its caller
        said = f"{type(error).__name__}: {error}"
    finally:
        os.write(writing, json.dumps(said).encode())
        os._exit(0)


def result(pid: int, pipe: int, since: float, patience: int) -> str:
    """How a mutant in a fork was noticed: by an error, by its crash, or because it never ended."""
    late = []

    def end(*_) -> None:
        late.append(True)
        os.killpg(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, since + patience - time.monotonic()))
    with open(pipe, "rb") as answer:
        text = answer.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    _, status = os.waitpid(pid, 0)
    end_group(pid)
    if text:
        return json.loads(text)
    return "never ends" if late else f"crashes with signal {os.WTERMSIG(status)}"


def end_group(pid: int) -> None:
    """End what a fork has started and left, such as the workers of a pool."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def prepare(n_lessons: int) -> None:
    """Have cells measure with few repeats and draw nothing; import once what most import."""
    os.environ |= {"CNNLAB_REPEATS": "1", "CNNLAB_OFFLINE": "1", "MPLBACKEND": "agg"}
    os.environ["NUMBA_NUM_THREADS"] = str(max(8, 4 * os.cpu_count()))  # as lesson 12 reserves
    os.environ["NUMBA_THREADING_LAYER"] = "workqueue"  # its threads come back after a fork
    os.environ.pop("CNNLAB_CLAIMS", None)
    for name in WARM if n_lessons > 1 else ():
        importlib.import_module(name)


def main(arguments: list[str] | None = None) -> int:
    """Break lessons, print what nobody notices, and return 1 if there is any such thing."""
    parser = argparse.ArgumentParser(prog="breaking", description=__doc__.partition("\n")[0])
    parser.add_argument("lessons", nargs="*", help="numbers such as 05, or files; all if none")
    parser.add_argument("--one", action="store_true", help="one mutant of each lesson")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("--patience", type=int, default=120, help="seconds until one never ends")
    parser.add_argument("--verbose", action="store_true", help="also how each was noticed")
    given = parser.parse_args(arguments)
    files = sorted(NOTEBOOKS.glob("*.ipynb"))
    if given.lessons:
        files = [f for f in files if parts.number(f.stem) in given.lessons]
        files += [Path(name) for name in given.lessons if name.endswith(".ipynb")]
    untagged = [file.stem for file in files if not matter(read(file))]
    if given.lessons and untagged:
        print(f"{', '.join(untagged)}: expected cells with the tag matter, found none")
        return 1
    files = [file for file in files if file.stem not in untagged]
    prepare(len(files))
    return max([report(file, given) for file in files], default=0)


def report(path: Path, given: argparse.Namespace) -> int:
    """Break one lesson in a fork, so that it leaves nothing to the next; 1 if it has a gap."""
    sys.stdout.flush()
    if pid := os.fork():
        status = os.waitpid(pid, 0)[1]
        end_group(pid)
        return os.waitstatus_to_exitcode(status)
    os.setpgid(0, 0)
    wrong, count = 0, 0
    how = {"one": given.one, "jobs": given.jobs, "patience": given.patience}
    try:
        for mutant, noticed in broken(path.resolve(), **how):
            listed, count = (path.stem, *mutant.key) in EQUIVALENT, count + 1
            if bool(noticed) == listed:
                wrong += 1
                what = f"listed as equivalent, but {noticed}" if listed else "nobody notices"
                print(f"{path.stem}: {what}: {mutant}", flush=True)
            elif given.verbose:
                print(f"{path.stem}: {mutant}: {noticed or 'changes nothing'}", flush=True)
        print(f"{path.stem}: {count} mutants, {wrong} gaps", flush=True)
    except Unproved as problem:
        wrong = 1
        print(problem, flush=True)
    except BaseException:  # a fork never returns to its caller
        wrong = 1
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(min(wrong, 1))


if __name__ == "__main__":
    raise SystemExit(main())
