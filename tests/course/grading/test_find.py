"""Answers are found by their names in the code, whatever else has become of the notebook."""

import json

import pytest

from cnnlab.course.grading import find
from tests.course.grading.hand_in import cell, notebook

RIGHT = "def my_sums(latency, per_cycle):\n    return latency * per_cycle"
CHECK = "exercise.sums_under_way(my_sums);"


def found(tmp_path, text, name="06_handed_in.ipynb", encoding="utf-8", exercise="sums_under_way"):
    """The answer that is found in a file, or None."""
    file = tmp_path / name
    file.write_bytes(text.encode(encoding))
    wanted = find.exercises_of("06")
    one = next(each for each in wanted if each.name == exercise)
    handed_in = find.of_lesson("06", wanted, find.submitted(file))
    return handed_in and find.answer_to(one, wanted, handed_in)


def value(answer):
    """What the answer makes of 3 and 4."""
    names = {}
    exec(answer.code, names)
    return eval(answer.expression, names)(3, 4)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-16-le"])
def test_in_any_encoding(tmp_path, encoding):
    text = notebook(f"# Größe\n{RIGHT}", CHECK).replace("\\u00f6", "ö").replace("\\u00df", "ß")
    assert value(found(tmp_path, text, encoding=encoding)) == 12


def test_without_its_check_and_all_other_cells(tmp_path):
    assert value(found(tmp_path, notebook(RIGHT))) == 12


def test_with_duplicate_ids_and_without_metadata(tmp_path):
    cells = [cell("x = 1") | {"id": "a"}, {"cell_type": "code", "source": [RIGHT], "id": "a"}]
    assert value(found(tmp_path, json.dumps({"cells": cells}))) == 12


def test_in_an_old_notebook_and_in_a_script(tmp_path):
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": RIGHT}]}]}
    assert value(found(tmp_path, json.dumps(old))) == 12
    assert value(found(tmp_path, f"{RIGHT}\n{CHECK}", "06.py")) == 12


def test_by_the_import_if_the_file_has_another_name(tmp_path):
    text = notebook("from cnnlab.lessons import lesson_06 as exercise", RIGHT, CHECK)
    assert value(found(tmp_path, text, "Untitled7 (1).ipynb")) == 12
    other = text.replace("lesson_06", "lesson_05")
    assert found(tmp_path, other, "Untitled8.ipynb") is None


def test_a_cell_with_a_syntax_error_takes_no_other_with_it(tmp_path):
    text = notebook("def f(:", "%matplotlib inline\n!ls\nx = 1", RIGHT, CHECK)
    file = tmp_path / "06.ipynb"
    assert value(found(tmp_path, text, file.name)) == 12
    (handed_in,) = find.submitted(file)
    assert len(handed_in.problems) == 1 and "code cell 1: SyntaxError" in handed_in.problems[0]


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, '{"cells": null}', "[1, 2]", "\0", '{"cells": [3]}']
)
def test_what_is_no_notebook_has_no_answer(tmp_path, text):
    assert found(tmp_path, text) is None


def test_the_last_of_several_counts_and_says_so(tmp_path):
    wrong = RIGHT.replace("*", "+")
    answer = found(tmp_path, notebook(wrong, RIGHT))
    assert value(answer) == 12 and "2 times" in answer.note
    assert value(found(tmp_path, notebook(RIGHT, wrong))) == 7


def test_helpers_come_with_it_and_nothing_else(tmp_path):
    cells = "import os", "os._exit(1)", "k = 1", "def helper(a, b):\n    return a * b * k"
    mine = "def my_sums(latency, per_cycle): return helper(latency, per_cycle)"
    answer = found(tmp_path, notebook(*cells, mine, CHECK))
    assert value(answer) == 12 and "os" not in answer.code


def test_what_was_deleted_comes_from_the_lesson(tmp_path):
    mine = "def my_sums(latency, per_cycle):\n    return int(np.prod([latency, per_cycle]))"
    assert value(found(tmp_path, notebook(mine))) == 12


def test_what_the_check_is_given_is_the_answer(tmp_path):
    call = "exercise.sums_under_way(lambda latency, per_cycle: latency * per_cycle)"
    assert value(found(tmp_path, notebook(call))) == 12


@pytest.mark.parametrize(
    "text, empty",
    [
        (RIGHT, False),
        ("def my_sums(a, b): ...", True),
        ("def my_sums(a, b):\n    '''Later.'''\n    pass", True),
        ("my_sums = ...", True),
        ("my_sums = [..., None]", True),
        ("my_sums = [..., 1]", False),
        ("my_sums = lambda a, b: a", False),
    ],
)
def test_an_empty_answer_is_told_from_a_wrong_one(tmp_path, text, empty):
    assert found(tmp_path, notebook(text)).empty == empty


def test_answers_of_one_name_go_by_the_check_or_by_the_order(tmp_path):
    names = "floor", "image_by_image"
    wanted = one, two = [find.Wanted("33", name, "my_seconds", 1) for name in names]
    for cells in (
        ["my_seconds = 1", "exercise.floor(my_seconds)", "my_seconds = 2",
         "exercise.image_by_image(my_seconds)"],
        ["my_seconds = 1", "my_seconds = 2"],
    ):  # fmt: skip
        (tmp_path / "33.ipynb").write_text(notebook(*cells))
        (handed_in,) = find.submitted(tmp_path / "33.ipynb")
        answers = [find.answer_to(each, wanted, handed_in) for each in (one, two)]
        assert [each.code for each in answers] == ["my_seconds = 1", "my_seconds = 2"]


@pytest.mark.parametrize("copy", ["06_x-Copy1.ipynb", "06_a.ipynb"])
def test_of_a_lesson_and_its_copy_the_answered_one_counts(tmp_path, copy):
    (tmp_path / "06_x.ipynb").write_text(notebook(RIGHT, CHECK))
    (tmp_path / copy).write_text(notebook("def my_sums(latency, per_cycle): ...", CHECK))
    handed_in = find.submitted(tmp_path)
    assert find.of_lesson("06", find.exercises_of("06"), handed_in).path.name == "06_x.ipynb"


def test_a_cell_of_cuda_c_is_an_answer(tmp_path):
    wanted = find.exercises_of("30")
    (tmp_path / "30.ipynb").write_text(notebook("%%cuda mine\nvoid f();", "exercise.guard(mine)"))
    (handed_in,) = find.submitted(tmp_path / "30.ipynb")
    guard = next(each for each in wanted if each.name == "guard")
    assert find.answer_to(guard, wanted, handed_in).cuda == "void f();"


def test_every_exercise_of_the_course_is_found_in_its_lesson():
    from cnnlab.course.parts import number, parts

    for name in (number(lesson.name) for part in parts() for lesson in part.lessons):
        wanted = find.exercises_of(name)
        assert wanted and all(find.answer_to(e, wanted, find.original(name)) for e in wanted), name
