"""Images of 28 × 28 pixels in ten classes, and the figures of the 2024 report."""

from cnnlab.data.datasets import NAMES, DataError, Dataset, load, report

__all__ = ["NAMES", "DataError", "Dataset", "load", "report"]
