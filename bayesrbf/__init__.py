"""Calibrated classifiers for small, messy, high-stakes tables."""
