"""Other kernels for the same operations, for the lessons to compare."""
