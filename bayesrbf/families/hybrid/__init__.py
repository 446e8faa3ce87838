"""Mixtures as densities and as classifiers."""
