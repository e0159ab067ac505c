import nbformat
import pytest

from cnnlab.course import answers, lesson
from cnnlab.lessons import lesson_00
from tests.course.toy_lesson import toy

FILE = '''
"""The exercises of lesson 77."""
import numba

from cnnlab.check.exercises import kinds

LAUNCH = None


def helper(x):
    return x


@kinds.number("One.", "Two.")
def sum_of_both():
    """Both together
    make five."""
    first = 2  # apples
    return (
        first + 3
    )


@kinds.kernel("relu", "Above zero.")
@numba.njit(parallel=True)
def rectify(z, y):
    """Each element for itself."""
    for i in numba.prange(z.size):  # one task each
        y[i] = max(z[i], 0)


@kinds.cuda_c("relu", LAUNCH, "Guard.")
def rectify_there():
    return """
__global__ void relu() {}
"""
'''


@pytest.fixture
def exercises(tmp_path, monkeypatch):
    (tmp_path / "lesson_77.py").write_text(FILE.lstrip(), encoding="utf-8")
    monkeypatch.setattr(answers, "EXERCISES", tmp_path)


def test_model_answers_are_shown_as_one_would_write_them(exercises):
    total, rectify, there = answers.of_lesson("77_toy")
    first = "```python\nfirst = 2\nsum_of_both = first + 3\n```\n\nBoth together make five."
    assert total == first
    assert rectify.startswith(
        "```python\n@numba.njit(parallel=True)\ndef rectify(z, y):\n    for i"
    )
    assert "one task each" in rectify and rectify.endswith("```\n\nEach element for itself.")
    assert "kinds" not in rectify and there == "```cpp\n__global__ void relu() {}\n```"


def test_they_are_folded_in_order(exercises):
    text = answers.folded("77_toy")
    assert text.startswith("## One way to do it") and text.count("</details>") == 3
    assert text.index("Exercise 1") < text.index("first + 3") < text.index("Exercise 2")
    assert "<details>\n<summary>Exercise 3</summary>\n\n```cpp" in text
    with pytest.raises(
        ValueError, match=r"answers: expected exercises in .*lesson_78\.py, got none"
    ):
        answers.folded("78_toy")


def test_the_cell_tagged_answers_is_stamped(exercises):
    nb = toy("1")
    nb.cells.insert(3, nbformat.v4.new_markdown_cell("old", metadata={"tags": ["answers"]}))
    stamped = lesson.stamp(nb, "77_toy.ipynb", None)
    assert stamped.cells[3].source == answers.folded("77_toy")
    assert lesson.stamp(stamped, "77_toy.ipynb", None) == stamped
    with pytest.raises(ValueError, match="lesson_78"):
        lesson.stamp(nb, "78_toy.ipynb", None)


def test_as_many_answers_are_shown_as_a_lesson_has_exercises():
    asked = [value for value in vars(lesson_00).values() if hasattr(value, "hints")]
    assert len(answers.of_lesson("00_start_here")) == len(asked) == 3
