"""Plots of measurements, and pictures of what a program does."""


# --- plots that lessons share ---------------------------------------------------------------------
