"""The course: run, render and check the lessons, and show them as pages."""

from cnnlab.course.results import record

__all__ = ["record"]
