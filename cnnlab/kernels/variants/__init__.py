"""Kernels that lessons set beside those of the strategies, by lesson."""
