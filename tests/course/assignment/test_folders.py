"""The folders of an assignment: nothing for the instructor alone is in those for students."""

import ast
import io
import json
import re
import zipfile

import nbformat
import pytest

from cnnlab.course import answers
from cnnlab.course.assignment import chosen, folders
from tests.course.assignment.made import written
from tests.course.toy_lesson import GITHUB
from tests.source import NOTEBOOKS, ROOT

pytestmark = pytest.mark.slow  # each builds a wheel, from the exercises of all lessons
# Answers that are also kernels of the course, which its lessons show.
KERNELS = {("lesson_00", "bias_gradient"), ("lesson_05", "sigmoid_gradient")}
LEAST = 16  # characters of an answer that is looked for as text; `return 10` is everywhere


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return written(tmp_path_factory.mktemp("made"), "31", "05", title="Week 3!", due="2030-01-31")


def unzipped(files):
    """The students' files, those of the wheel in place of it, as text."""
    for name, content in files.items():
        if name.startswith("students/") and name.endswith(".whl"):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                yield from ((each, packed.read(each).decode()) for each in packed.namelist())
        elif name.startswith("students/"):
            yield name, content.decode()


def normalised(source):
    """Code without comments, docstrings, names of its own or blanks, as far as it is Python."""
    try:
        nodes = ast.parse(source).body
    except SyntaxError:
        return squeezed(re.sub("//.*", "", source))
    return squeezed("\n".join(map(ast.unparse, nodes)))


def squeezed(text):
    return re.sub(r"\s", "", text)


def renamed(function):
    """The body of a function, its names numbered in the order in which they occur."""
    function, numbers = ast.parse(ast.unparse(function)).body[0], {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.arg, node.annotation = str(numbers.setdefault(node.arg, len(numbers))), None
        elif isinstance(node, ast.Name):
            node.id = str(numbers.setdefault(node.id, len(numbers)))
    start = ast.get_docstring(function) is not None
    return squeezed("\n".join(map(ast.unparse, function.body[start:])))


def model_answers():
    """Each model answer: its module, its name, its code, and its body with names numbered."""
    for file in sorted(answers.EXERCISES.glob("lesson_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and answers.kind(node):
                body = node.body[ast.get_docstring(node) is not None :]
                code = "\n".join(map(ast.unparse, body))
                if answers.kind(node) == "cuda_c":
                    code = ast.literal_eval(body[-1].value)
                elif answers.kind(node) in ("number", "choice", "labels"):
                    code = code.replace("return ", "")
                yield (file.stem, node.name), normalised(code), renamed(node)


def test_no_answer_is_in_the_folder_for_students(files):
    texts, functions = {}, {}
    for name, text in unzipped(files):
        cells = [text]
        if name.endswith(".ipynb"):
            cells = [cell.source for cell in nbformat.reads(text, as_version=4).cells]
        texts[name] = "\n".join(map(normalised, cells))
        tree = ast.parse(text if name.endswith(".py") else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(renamed(node), name)
    assert any("lesson_59.py" in name for name in texts)
    found = {}
    for key, code, body in model_answers():
        inside = [name for name, text in texts.items() if len(code) >= LEAST and code in text]
        if len(body) >= LEAST and body in functions:
            inside.append(functions[body])
        if inside:
            found[key] = inside
    assert set(found) == KERNELS, found
    assert all(name.startswith("cnnlab/kernels/") for names in found.values() for name in names)


def test_what_stands_for_an_answer_is_sealed_or_nothing(files):
    for name, text in unzipped(files):
        assert name.endswith(".py") or "One way to do it" not in text, name
        if re.search(r"lessons/lesson_\w+\.py", name):
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and answers.kind(node):
                    body = ast.unparse(node.body)
                    assert re.fullmatch(
                        r"\.\.\.|return (sealed\.Number\(.*|\[sealed\..*|\w+_table\.of\(given\))",
                        body,
                    ), (name, body)


def test_twice_gives_the_same_bytes(files, tmp_path):
    assert written(tmp_path, "05", "31", title="Week 3!", due="2030-01-31") == files


def test_the_folders_hold_what_they_should(files):
    both = {"05_one_core.ipynb", "31_shared_memory.ipynb"}
    at = {name.rpartition("/")[0]: set() for name in files}
    for name in files:
        folder, _, file = name.rpartition("/")
        at[folder].add(file)
    assert at["students"] == both | {
        "READ-ME.md",
        "cnnlab-0.1.0-py3-none-any.whl",
        "glossary.md",
        "methods.md",
    }
    assert at["instructor"] == {"READ-ME.md", "rubric.json"}
    assert at["instructor/answers"] == at["instructor/otter"] == both
    assert at["instructor/nbgrader/source/week-3"] == both
    for name, content in files.items():
        if name.endswith(".ipynb"):
            nbformat.validate(nbformat.reads(content.decode(), as_version=4))
    rubric = json.loads(files["instructor/rubric.json"])
    assert list(rubric) == ["title", "due", "exercises", "seed"]
    assert (rubric["title"], rubric["due"], rubric["seed"]) == ("Week 3!", "2030-01-31", 1)
    first = {"lesson": "05", "name": "trips", "points": 1, "variable": "my_ratio"}
    assert rubric["exercises"][0] == first and len(rubric["exercises"]) == 9
    assert all(
        "Due: 2030-01-31" in files[f"{w}/READ-ME.md"].decode() for w in ("students", "instructor")
    )


def test_the_seed_stays_and_other_lessons_need_another_title(tmp_path, monkeypatch):
    monkeypatch.setattr(
        folders.wheel, "write_wheel", lambda root, folder: NOTEBOOKS / "glossary.md"
    )
    made = chosen.assignment(["00"], NOTEBOOKS, "A week")
    where = folders.write(made, ROOT, tmp_path)
    rubric = where / "instructor" / "rubric.json"
    (where / "instructor" / "mine.txt").write_text("kept")
    first = rubric.read_bytes()
    assert folders.write(made, ROOT, tmp_path) == where and rubric.read_bytes() == first
    assert (where / "instructor" / "mine.txt").read_text() == "kept"
    assert json.loads(first)["seed"] != folders.kept_seed(made, tmp_path / "elsewhere")
    others = chosen.assignment(["00", "01"], NOTEBOOKS, "A week")
    with pytest.raises(ValueError, match=r"TITLE: expected a new one, as .* is of lessons 00"):
        folders.write(others, ROOT, tmp_path)
    rubric.write_text("{}")
    with pytest.raises(ValueError, match="expected a rubric, got KeyError"):
        folders.write(made, ROOT, tmp_path)


def test_a_lesson_that_is_handed_out_knows_no_public_address(monkeypatch):
    path = NOTEBOOKS / "05_one_core.ipynb"
    public = folders.lesson.stamp(nbformat.read(path, as_version=4), path.name, GITHUB)
    monkeypatch.setattr(folders.nbformat, "read", lambda *_, **__: public)
    cells = folders.lesson_of(path).cells
    assert GITHUB in public.cells[0].source + public.cells[1].source
    assert not any(
        address in cell.source for cell in cells for address in (GITHUB, "colab.research")
    )
