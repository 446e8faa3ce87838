"""Sparse discriminative mixtures as an estimator."""
