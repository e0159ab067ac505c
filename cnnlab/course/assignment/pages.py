"""The pages that lie beside an assignment's notebooks: what to do with them."""

from cnnlab.course.assignment.chosen import Assignment
from cnnlab.course.assignment.exercises import Asked

STUDENTS = """\
# {title}

{due}Keep all files of this folder together, open a lesson in JupyterLab or on Colab, and run its
cells from the top. The first cell installs `cnnlab` from the wheel in this folder, once.

Write your answers below the skeletons: add lines, and leave names as they are. A check tells you at
once whether an answer is right; a wrong one gets a hint, and a plainer one the second time. The
check knows a right answer when it sees one, and holds none itself. Hand in the notebooks under
their own names.

{table}
"""
INSTRUCTORS = """\
# {title}: for the instructor

{due}`../students` is for students. Nothing in this folder is.

- `answers/`: the notebooks, solved by the model answers. Run them, and every check passes.
- `rubric.json`: points, by the marks ● of each exercise, and the secret seed from which fresh cases
  are drawn. Edit the points here; `make assignment` writes them anew.
- `nbgrader/`: a course for nbgrader. In that folder, with `cnnlab` installed beside nbgrader:

      nbgrader generate_assignment {name}    # release/, for students
      nbgrader autograde {name}              # reads submitted/STUDENT/{name}/
      nbgrader generate_feedback {name}

  It runs whole lessons, a minute or so for each, and what students hand in runs with your rights.
- `otter/`: a source for each lesson: `otter assign NOTEBOOK.ipynb FOLDER`, then `otter run`.

Challenges have no points.

In the wheel for students the model answers are gone. Numbers, words and formulas are compared with
seals, which open for right answers alone; a test that would tell the answer gives way to recorded
examples. Who tries every number finds the right one, as with any check that answers. And what is
handed out here is no secret where the course itself can be had, with its answers.

{table}
"""


def for_students(made: Assignment, asked: list[Asked]) -> str:
    """What students read first."""
    return STUDENTS.format(title=made.title, due=due(made), table=table(asked))


def for_instructors(made: Assignment, asked: list[Asked]) -> str:
    """What the instructor reads first."""
    facts = {"title": made.title, "due": due(made), "table": table(asked), "name": made.name}
    return INSTRUCTORS.format(**facts)


def due(made: Assignment) -> str:
    """When it is due, as a paragraph; nothing if it is not said."""
    return f"Due: {made.due}\n\n" if made.due else ""


def table(asked: list[Asked]) -> str:
    """The exercises with their points, as a table."""
    rows = [f"| {a.lesson} | {a.name.replace('_', ' ')} | {a.points} |" for a in asked]
    total = f"| | together | {sum(each.points for each in asked)} |"
    return "\n".join(["| lesson | exercise | points |", "| --- | --- | --- |", *rows, total])
