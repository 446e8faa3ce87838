"""Sparse discriminative Gaussian mixtures, on arrays."""
