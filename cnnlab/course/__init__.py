"""The course: its lessons run, rendered, checked and shown as pages. Lessons use `record`."""

from cnnlab.course.results import record

__all__ = ["record"]
