"""Exercises to hand in: `make assignment LESSONS="05 12 31" TITLE="Week 3" DUE=2030-01-31`.

`build/assignment` is a course of nbgrader. `source/week-3` there is for the instructor: one way to
do each exercise, points, and hidden tests. `students/week-3` has the same notebooks without these.
A notebook has the exercises of a lesson, its imports, and what else they need of it.
"""

import ast
import builtins
import copy
import re
import secrets
from datetime import date
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

HEADING = "## Exercises"
EXERCISE = re.compile(r"^\*\*(\d+) (●+) ", re.MULTILINE)  # "**1 ●● Count.** How many …"
CALL = re.compile(r"^(lesson\.(\w+))\((\w+)\);?$", re.MULTILINE)
WAY = re.compile(r"<summary>Exercise (\d+)</summary>\s*```(\w+)\n(.*?)\n```", re.DOTALL)
HIDDEN = re.compile(r"\n?[^\n]*\bBEGIN (SOLUTION|HIDDEN TESTS)\n.*?\bEND \1\b[^\n]*", re.DOTALL)
DURATION = re.compile(r"^# takes about .*\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(\w+\.(?:md|ipynb)[^)]*\)")  # to what lies beside a lesson

FIRST = Path(__file__).with_name("assignment.md")  # the first cell
CONFIG = """\
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "cnnlab"
c.ClearSolutions.code_stub = {"python": ""}  # what students get is a skeleton already
c.Execute.timeout = 300  # seconds for a cell
"""


def write(course: Path, notebooks: Path, lessons: str, title: str, due: str, seed: str) -> None:
    """Write the assignment to the nbgrader course in the folder `course`; print its points.

    Parameters are as on the command line; empty ones are not given, and `lessons` are numbers, such
    as "05 12 31". Raises ValueError where one is none of those, or where the course has an
    assignment of that title: it is never overwritten.
    """
    paths = chosen(lessons, notebooks)
    title = title or f"Lessons {', '.join(paths)}"
    name = re.sub(r"\W+", "-", title).strip("-").lower()
    if not name:
        raise ValueError(f"TITLE: expected letters or digits, got {title!r}")
    if seed and not seed.isdecimal():
        raise ValueError(f"SEED: expected a whole number, got {seed!r}")
    try:
        date.fromisoformat(due or "2000-01-01")
    except ValueError:
        raise ValueError(f"DUE: expected a date such as 2030-01-31, got {due!r}") from None
    source, students = course / "source" / name, course / "students" / name
    if source.exists():
        raise ValueError(f"TITLE: expected a new one, got {title!r}: there is {source}")
    number = int(seed) if seed else secrets.randbits(31)
    made = {path.stem: assignment(path, title, due, number) for path in paths.values()}
    for folder in (source, students):
        folder.mkdir(parents=True, exist_ok=True)
    for stem, nb in made.items():
        nbformat.write(nb, source / f"{stem}.ipynb")
        nbformat.write(for_students(nb), students / f"{stem}.ipynb")
    if not (config := course / "nbgrader_config.py").exists():
        config.write_text(CONFIG, encoding="utf-8")
    duedate = f' --duedate "{due}"' if due else ""
    cells = [cell.metadata.get("nbgrader", {}) for nb in made.values() for cell in nb.cells]
    print(f"{sum(cell.get('points', 0) for cell in cells)} points in {len(made)} notebooks")
    print(f"{students}: to hand out, with build/cnnlab.zip of `make zip`")
    print(f"{course}: for you, where nbgrader is installed:")
    print(f"  nbgrader db assignment add {name}{duedate}")
    print(f"  nbgrader generate_assignment {name}")


def chosen(lessons: str, notebooks: Path) -> dict[str, Path]:
    """The notebooks of the lessons with these numbers, such as "05 12", by number, in order."""
    known = {path.name.partition("_")[0]: path for path in sorted(notebooks.glob("*.ipynb"))}
    wanted = lessons.replace(",", " ").split()
    for number in wanted or [""]:
        if number not in known:
            raise ValueError(f"LESSONS: expected numbers of {', '.join(known)}, got {number!r}")
    return {number: known[number] for number in sorted(set(wanted))}


def assignment(path: Path, title: str, due: str, seed: int) -> NotebookNode:
    """The exercises of a lesson as a source of nbgrader: with solutions, points, hidden tests.

    Raises ValueError if the lesson has no exercises, or they use names that no cell defines.
    """
    nb = nbformat.read(path, as_version=4)
    at = next((i for i, cell in enumerate(nb.cells) if HEADING in cell.source), len(nb.cells))
    algorithms = {n: way for cell in nb.cells[at:] for n, *way in WAY.findall(cell.source)}
    last = max((i for i, cell in enumerate(nb.cells) if CALL.search(cell.source)), default=0)
    asked = nb.cells[at : last + 1]
    while nb.cells[last + 1].cell_type == "code":  # a picture of the last answer
        asked.append(nb.cells[last := last + 1])
    if not asked or not algorithms:
        raise ValueError(f"{path.name}: expected exercises, and one way to do each; got none")
    setup, *before = (cell.source for cell in nb.cells[:at] if cell.cell_type == "code")
    exercises = alone(exercise_cells(asked, algorithms, seed), before)
    due = f" · due: {due}" if due else ""
    first = FIRST.read_text(encoding="utf-8")
    first = first.format(heading=nb.cells[0].source.partition("\n")[0], title=title, due=due)
    cells = [
        v4.new_markdown_cell(first.strip()),
        v4.new_code_cell(setup),
        *map(v4.new_code_cell, preamble(before, exercises, path.name)),
        *exercises,
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return v4.new_notebook(cells=cells, metadata=nb.metadata)


def for_students(nb: NotebookNode) -> NotebookNode:
    """An assignment without solutions, hidden tests and what only nbgrader reads."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        cell.source = HIDDEN.sub("", cell.source).strip()
        cell.metadata.pop("nbgrader", None)
    return nb


def exercise_cells(asked: list[NotebookNode], algorithms: dict, seed: int) -> list[NotebookNode]:
    """The cells of the exercises; each answer and each check has a cell of its own.

    `algorithms` has the language and the code of one way to do each exercise, by number.
    """
    cells, number, marks = [], "", ""
    for cell in asked:
        source = DURATION.sub("", cell.source)
        if cell.cell_type == "markdown":
            source = LINK.sub(r"\1", source[max(source.find(HEADING), 0) :])
            number, marks = (EXERCISE.findall(source) or [(number, marks)])[-1]
            cells.append(v4.new_markdown_cell(source))
            continue
        result = CALL.search(source)
        before, _, after = source.partition(result[0]) if result else (source, "", "")
        if before.strip():
            cells.append(v4.new_code_cell(before.strip()))
        if result:
            call, name, variable = result.groups()
            answer, hidden = cells[-1], f"{call}.grade({variable}, seed={seed})"
            answer.source = solved(answer.source, *algorithms[number], name, variable)
            answer.metadata.nbgrader = metadata(name)
            check = f"{call}({variable});\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
            graded = {"nbgrader": metadata(f"check-{name}", points=len(marks))}
            cells.append(v4.new_code_cell(check, metadata=graded))
        if after.strip():
            cells.append(v4.new_code_cell(after.strip()))
    return cells


def solved(skeleton: str, language: str, way: str, name: str, variable: str) -> str:
    """The cell of an answer with one way to do it below the skeleton, between nbgrader's marks.

    nbgrader leaves a blank line for each pair of marks, so none stands where something is missing.
    """
    if language == "python" and f"def {name}(" in way and f"def {variable}(" not in skeleton:
        way += f"\n\n\n{variable} = {name}()"  # what it returns
    else:
        way = re.sub(rf"(?<!\.)\b{name}\b", variable, way)
    if language == "python":
        return f"{skeleton}\n\n\n### BEGIN SOLUTION\n{way}\n### END SOLUTION"
    magic, _, kernel = skeleton.partition("\n")
    unused = "// BEGIN SOLUTION\n#if 0\n// END SOLUTION"
    return f"{magic}\n{unused}\n{kernel}\n// BEGIN SOLUTION\n#endif\n{way}\n// END SOLUTION"


def metadata(name: str, **points: int) -> dict:
    """What nbgrader has to know of a cell: an answer, or with `points`, a check of one."""
    kinds = {"grade": bool(points), "solution": not points, "locked": bool(points)}
    return {"grade_id": name, "schema_version": 3, "task": False, **kinds, **points}


# --- what the exercises need of their lesson ----------------------------------------------------


def preamble(before: list[str], exercises: list[NotebookNode], lesson: str) -> list[str]:
    """Cells for the beginning: imports, and what else of the lesson the exercises use or mention.

    Raises ValueError if they use a name that no cell of `before` defines.
    """
    nodes = [node for source in before for node in python(source).body]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    known = {name for source in before for name in imports_of(source)}
    texts = "\n".join(cell.source for cell in exercises if cell.cell_type == "markdown")
    wanted, kept, called = set(), [], set(re.findall(r"`(\w+)\(", texts))
    for source in reversed([cell.source for cell in exercises if cell.cell_type == "code"]):
        used, made = names(source)
        wanted = (wanted - made) | used
    for source in reversed(before):
        used, made = names(source)
        if ((wanted | called) - known) & made:
            wanted, called = (wanted - (made - known)) | used, called - made
            kept.insert(0, without_imports(source))
    if missing := wanted - known:
        raise ValueError(f"{lesson}: exercises use {', '.join(missing)}, which no cell defines")
    lines = dict.fromkeys(map(ast.unparse, imports))
    magics = re.findall(r"^%load_ext .*", "\n".join(before), re.MULTILINE)
    return ["\n".join([*lines, *magics]), *kept]


def alone(exercises: list[NotebookNode], before: list[str]) -> list[NotebookNode]:
    """The cells but those that only show something, and need for it what the lesson computed."""
    known = {name for source in before for name in imports_of(source)}
    kept = []
    for cell in exercises:
        used, made = names(cell.source) if cell.cell_type == "code" else (set(), set())
        if "nbgrader" in cell.metadata or used <= known:
            kept.append(cell)
            known |= made
    return kept


def without_imports(source: str) -> str:
    """A cell without its imports, lines of magic and the comment on how long it takes."""
    lines = DURATION.sub("", source).split("\n")
    for node in python("\n".join(lines)).body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
            lines[node.lineno - 1 : node.end_lineno] = [None] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line for line in lines if line is not None).strip()


def imports_of(source: str) -> set[str]:
    """The names that a cell imports."""
    aliases = [node for node in ast.walk(python(source)) if isinstance(node, ast.alias)]
    return {alias.asname or alias.name.partition(".")[0] for alias in aliases}


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell takes from elsewhere, and those that it defines."""
    if result := re.match(r"%%(?:cuda|opencl) (\w+)", source):
        return set(), {result[1]}
    nodes = list(ast.walk(python(source)))
    made = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    made |= imports_of(source)
    made |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    local = {n.arg for n in nodes if isinstance(n, ast.arg)}
    return used - made - local - set(dir(builtins)), made


def python(source: str) -> ast.Module:
    """A cell as Python, without its magics; nothing of a cell that is a magic as a whole."""
    if source.startswith("%%"):
        return ast.parse("")
    return ast.parse(re.sub(r"^(\s*)[%!]\w.*", r"\1pass", source, flags=re.MULTILINE))
