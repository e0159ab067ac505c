"""Answers that are alike but for names and layout are pointed out."""

from cnnlab.course.grading.find import Answer
from cnnlab.course.grading.similar import alike, normal

LOOP = "def f(x, z):\n    for i in range(len(x)):\n        z[i] = 2 * x[i] + 1"
RENAMED = """
import numpy as np
def mine(a: list, out) -> None:
    '''All my own work.'''
    for n in range(len(a)):  # each
        out[n] = 2*a[n] + 1
"""


def shape(code):
    return normal(Answer(code, "f"))


def test_names_layout_comments_and_hints_do_not_matter():
    assert shape(LOOP) == shape(RENAMED) != ""
    assert shape(LOOP) != shape(LOOP.replace("2 *", "3 *"))
    assert shape(LOOP) != shape(LOOP.replace("x[i]", "z[i]"))


def test_cuda_c_is_compared_too_and_short_answers_are_not():
    kernel = "__global__ void f(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] = 2; }"
    other = kernel.replace("a[", "data[").replace("* a", "* data").replace("; ", ";\n// so\n")
    assert normal(Answer("", "f", kernel)) != normal(Answer("", "f", kernel.replace("2", "3")))
    assert normal(Answer("", "f", kernel)) == normal(Answer("", "f", other)) != ""
    assert normal(Answer("x = 3", "x")) == ""


def test_what_most_have_alike_is_left_out():
    def result(name, first, second):
        rows = [("one", first), ("two", second)]
        return {
            "student": name,
            "exercises": [{"lesson": "05", "name": n, "shape": s} for n, s in rows],
        }

    given = [result(n, "usual", s) for n, s in zip("abcdef", ["x", "x", "", "", "y", "z"])]  # noqa: B905
    assert alike(given) == [{"lesson": "05", "name": "two", "students": ["a", "b"]}]
