"""Kernel networks as an estimator."""
