"""Plots of measurements, and pictures of what a program does."""
