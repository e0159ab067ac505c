"""What is chosen: lessons by their numbers, in order, once; a title that names a folder."""

import pytest

from cnnlab.course.assignment.chosen import assignment
from tests.source import NOTEBOOKS


def test_lessons_are_taken_in_order_and_once():
    made = assignment(["12", "05", "05"], NOTEBOOKS)
    assert [path.stem for path in made.lessons] == ["05_one_core", "12_stationarity"]
    assert (made.title, made.due, made.name) == ("Lessons 05, 12", None, "lessons-05-12")
    assert assignment(["00b"], NOTEBOOKS, "Übung 3: Threads/Ranks").name == "übung-3-threads-ranks"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (([],), "LESSONS: expected numbers of 00, .*, got ''"),
        ((["5"],), "LESSONS: .*, got '5'"),
        ((["05"], "../.."), "TITLE: expected letters or digits"),
        ((["05"], "A", "31.1.2030"), "DUE: expected a date such as 2030-01-31, got '31.1.2030'"),
    ],
)
def test_what_cannot_be_chosen_is_told(arguments, said):
    wanted, *others = arguments
    with pytest.raises(ValueError, match=said):
        assignment(wanted, NOTEBOOKS, *others)
