"""The pages beside the notebooks: what is due, and how many points there are."""

from cnnlab.course.assignment import pages
from cnnlab.course.assignment.chosen import Assignment
from cnnlab.course.assignment.exercises import Asked

ASKED = [Asked("05", "trips", "my_ratio", 1, 2, 3), Asked("12", "bias_too", "mine", 3, 4, 5)]


def test_pages_have_the_title_the_date_and_the_points():
    made = Assignment((), "Week 3", "2030-01-31")
    for page in (pages.for_students(made, ASKED), pages.for_instructors(made, ASKED)):
        assert page.startswith("# Week 3") and "Due: 2030-01-31\n" in page
        assert "| 05 | trips | 1 |\n| 12 | bias too | 3 |\n| | together | 4 |" in page
    assert "nbgrader autograde week-3 " in pages.for_instructors(made, ASKED)
    assert "Due" not in pages.for_students(Assignment((), "Week 3", None), ASKED)
