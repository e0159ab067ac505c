"""Images of 28 × 28 pixels in ten classes, and the figures of the 2024 report."""

from cnnlab.data.datasets import NAMES, DataError, Dataset, held_out, load
from cnnlab.data.figures import report, report_listings

__all__ = ["NAMES", "DataError", "Dataset", "held_out", "load", "report", "report_listings"]
